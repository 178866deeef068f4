"""Devices in several processes that mpiexec has started: MPI carries the messages between processes.

Within a process devices are threads that meet at a board. Data for other processes is sent as messages, without
blocking: a device looks again and again whether its messages have arrived, and whether a process has failed or ended in
the meantime. A message begins with a description of the sender's program: devices of different programs, or at
different places of one, are told so.

The tag of a message names the sending device and the receiving device of a process; MPI keeps such messages in order.
All calls of MPI are made under one lock, so that any level of thread support from MPI_THREAD_SERIALIZED on will do.
"""

from __future__ import annotations

import atexit
import hashlib
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import CollectiveError, UnsupportedError
from ..ir import HloModule
from ..support.records import dataclass
from ..system import system
from .communicator import Blocks, Communicator, Meeting, NDArray
from .fingerprint import fingerprint
from .hosts import description, fair_share
from .threads import Board
from .workers import run_in_threads
from .world import World, collective_timeout, local_device_count

T = TypeVar("T")

_HEADER = struct.Struct("<32s16sqh")
"""The program's fingerprint, the meeting, the bytes of all blocks, and the bytes of the meeting's text, which
follows."""
_TEXT = 200
_INLINE = 4096
"""So many bytes of blocks come in the same message."""
_LONGEST = 1 << 30
"""Bytes of one message."""
_SPIN_SECONDS = 5e-4
_EAGER_SECONDS = 5e-3
"""So long a wait gives up its CPU, but does not sleep: MPI moves messages only during calls."""
_LONGEST_SLEEP = 1e-3
_GRACE = 1.0
"""Seconds in which a message of a process that has ended may still arrive."""


def load_mpi() -> Any:
    """mpi4py's module MPI. UnsupportedError, with installation advice, if it is missing."""
    try:
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py found no library
        raise UnsupportedError(
            f"programs over several processes need mpi4py and an MPI library ({error}): pip install 'hloom[mpi]', and "
            "Debian's openmpi-bin with libopenmpi-dev or another MPI"
        ) from error


class _Notice(NamedTuple):
    kind: str
    """"failed" or "ended"."""
    text: str
    at: float


class _Link:
    """The messages of this process: calls of MPI under one lock, and the notices of other processes."""

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self._lock = threading.Lock()
        self.notices: dict[int, _Notice] = {}
        self._kept: list[object] = []
        world = mpi.COMM_WORLD
        self.rank: int = world.Get_rank()
        self.size: int = world.Get_size()
        mine = np.array([local_device_count()], np.int64)
        counts = np.zeros(self.size, np.int64)
        place = description(mpi.Get_processor_name(), system.scheduled_on())
        places = np.zeros((self.size, len(place)), np.uint8)
        self._wait_at_start([world.Iallgather(mine, counts), world.Iallgather(place, places)])
        self.counts: tuple[int, ...] = tuple(counts.tolist())
        self.share = fair_share(places, self.rank)
        (self._data, first), (self._control, second) = world.Idup(), world.Idup()
        self._wait_at_start([first, second])

    def _wait_at_start(self, requests: list[Any]) -> None:
        """All processes must come to `initialize`."""
        end = time.monotonic() + collective_timeout()
        while not self.mpi.Request.Testall(requests):
            if time.monotonic() > end:
                raise CollectiveError(
                    f"hloom.distributed.initialize: process {self.rank} of {self.size} waits for the others, which "
                    f"have not called it after {collective_timeout():g} seconds"
                )
            time.sleep(_LONGEST_SLEEP)

    def send(self, process: int, tag: int, data: NDArray) -> list[Any]:
        """Begin to send bytes; the requests."""
        with self._lock:
            return [self._data.Isend([part, self.mpi.BYTE], process, tag) for part in _parts(data)]

    def receive(self, process: int, tag: int, data: NDArray) -> list[Any]:
        """Begin to receive bytes into `data`; the requests."""
        with self._lock:
            return [self._data.Irecv([part, self.mpi.BYTE], process, tag) for part in _parts(data)]

    def is_done(self, requests: list[Any]) -> bool:
        """True if all have been sent or received."""
        with self._lock:
            done: bool = self.mpi.Request.Testall(requests)
        return done

    def notify(self, kind: str, text: str) -> None:
        """Tell all other processes; it does not wait for them."""
        data = np.frombuffer(f"{kind} {text}".encode("utf-8", "replace")[:_INLINE], np.uint8)
        with self._lock:
            requests = [self._control.Isend([data, self.mpi.BYTE], p, 0) for p in range(self.size) if p != self.rank]
            self._kept.append((data, requests))

    def look(self) -> None:
        """Receive the notices that have arrived."""
        with self._lock:
            status = self.mpi.Status()
            while self._control.Iprobe(self.mpi.ANY_SOURCE, 0, status):
                data = np.empty(status.Get_count(self.mpi.BYTE), np.uint8)
                self._control.Recv([data, self.mpi.BYTE], status.Get_source(), 0)
                kind, _, text = data.tobytes().decode("utf-8", "replace").partition(" ")
                before = self.notices.get(status.Get_source())
                if before is None or before.kind == "ended":
                    self.notices[status.Get_source()] = _Notice(kind, text, time.monotonic())

    def part(self, seconds: float) -> bool:
        """Wait until all processes have come to this place, at their end; False if they have not after that time."""
        with self._lock:
            request = self._control.Ibarrier()
            self._kept.append(request)
        end = time.monotonic() + seconds
        while not self.is_done([request]):
            if time.monotonic() > end:
                return False
            time.sleep(_LONGEST_SLEEP)
        return True


def _parts(data: NDArray) -> list[NDArray]:
    return [data[k : k + _LONGEST] for k in range(0, len(data), _LONGEST)]


class MpiWorld(World):
    """The devices of all processes of MPI.COMM_WORLD. All of them must make one at the same time.

    UnsupportedError if mpi4py is missing or MPI allows no threads; CollectiveError if other processes do not come.
    """

    def __init__(self) -> None:
        mpi = load_mpi()
        if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
            raise UnsupportedError("the MPI library lets only the main thread call it; MPI_THREAD_SERIALIZED is needed")
        self._link = _Link(mpi)
        self.process_index, self.process_count = self._link.rank, self._link.size
        self.cpu_share = self._link.share
        """How many threads this process should have, since others run on its CPUs, too."""
        self._runs = threading.RLock()
        self._failure: str | None = None
        self._ended = False
        atexit.register(self.end)

    def device_counts(self) -> Sequence[int]:
        """As they were when the world was made."""
        return self._link.counts

    def run(
        self, function: Callable[[Communicator], T], num_replicas: int, num_partitions: int, assignment: Sequence[int],
        program: HloModule | None,
    ) -> list[T]:  # fmt: skip
        """See `run_on_devices`. One program runs at a time, so that all processes run them in the same order."""
        places = self._places(assignment)
        numbers = [k for k, place in enumerate(places) if place.process == self.process_index]
        with self._runs:
            if self._failure is not None:
                raise CollectiveError(f"processes cannot work together since a program failed: {self._failure}")
            what = "" if program is None else fingerprint(program)
            run = _Run(self, self._link, places, Board(len(places), collective_timeout()), what)
            devices = [_MpiCommunicator(run, k, num_replicas, num_partitions) for k in numbers]
            return run_in_threads(run, function, devices)

    def _places(self, assignment: Sequence[int]) -> list[_Place]:
        first = [sum(self._link.counts[:process]) for process in range(self.process_count)]
        processes = [self.process_of(device) for device in assignment]
        return [_Place(process, device - first[process]) for device, process in zip(assignment, processes)]

    def fail(self, text: str) -> None:
        """A device of this process has failed: the others are told, and this is the last program."""
        if self._failure is None:
            self._failure = text
            self._link.notify("failed", text)

    def end(self) -> None:
        """This process does not take part any more. After a failure, processes that do not end are made to."""
        if self._ended:
            return
        self._ended = True
        atexit.unregister(self.end)
        self._link.notify("ended", "")
        if self._failure is None:
            self._link.part(0)
        elif not self._link.part(collective_timeout()):
            self._link.mpi.COMM_WORLD.Abort(1)


class _Place(NamedTuple):
    process: int
    slot: int
    """Which of the process's devices it is."""


class _Run:
    """One run of a program, in this process. It is where the threads report (`workers.Outcome`)."""

    def __init__(
        self, world: MpiWorld, link: _Link, places: Sequence[_Place], board: Board, program: str
    ) -> None:
        self.link, self.places, self.board, self.program = link, tuple(places), board, program
        self._world = world
        self.processes = {place.process for place in places}
        self._most = max(link.counts)

    def is_here(self, device: int) -> bool:
        """True for a device of this process."""
        return self.places[device].process == self.link.rank

    def tag(self, source: int, target: int) -> int:
        """Of messages between two devices."""
        return self.places[source].slot * self._most + self.places[target].slot

    def finish(self, device: int) -> None:
        """See `Outcome`."""
        self.board.finish(device)

    def fail(self, device: int, error: BaseException) -> None:
        """See `Outcome`. Other processes are told of the first error, if it does not come from them."""
        self.board.fail(device, error)
        where = f"device {device} " if device >= 0 else ""
        self._world.fail(f"{where}in process {self.link.rank}: {type(error).__name__}: {error}")

    @property
    def failed(self) -> dict[int, BaseException]:
        """See `Outcome`."""
        return self.board.failed

    def wait(self, device: int, meeting: Meeting, requests: Mapping[int, list[Any]], what: str) -> None:
        """Wait until all requests are done; `requests` has them by the other device. CollectiveError if a process
        fails or ends, or if it takes too long."""
        started = time.monotonic()
        everything = [request for each in requests.values() for request in each]
        while not self.link.is_done(everything):
            waited = time.monotonic() - started
            if waited > _EAGER_SECONDS:
                self.link.look()
                for other, error in self.board.failed.items():
                    raise CollectiveError(
                        f"{meeting}: device {device} waits for others, but device {other} failed: "
                        f"{type(error).__name__}: {error}"
                    ) from error
                missing = [other for other, each in requests.items() if not self.link.is_done(each)]
                self._raise_notice(device, meeting, missing)
                if waited > self.board.timeout:
                    raise CollectiveError(
                        f"{meeting} among devices {list(meeting.members)} is not complete after "
                        f"{self.board.timeout:g} seconds; device {device} {what} {self._shown(missing)}"
                    )
                time.sleep(min(_LONGEST_SLEEP, waited / 100))
            elif waited > _SPIN_SECONDS:
                time.sleep(0)

    def _raise_notice(self, device: int, meeting: Meeting, missing: Sequence[int]) -> None:
        for process, notice in self.link.notices.items():
            if notice.kind == "failed" and process in self.processes:
                raise CollectiveError(f"{meeting}: device {device} waits, but another one failed: {notice.text}")
            theirs = [other for other in missing if self.places[other].process == process]
            if notice.kind == "ended" and theirs and time.monotonic() > notice.at + _GRACE:
                raise CollectiveError(
                    f"{meeting}: device {device} waits for {self._shown(theirs)}, but process {process} has ended"
                )

    def _shown(self, devices: Sequence[int]) -> str:
        shown = [f"{device} (process {self.places[device].process})" for device in devices]
        return f"{'device' if len(shown) == 1 else 'devices'} {', '.join(shown)}"


@dataclass(frozen=True, slots=True)
class _Announced:
    """The header of a message."""

    program: str
    meeting: bytes
    nbytes: int
    text: str

    @classmethod
    def of(cls, program: str, meeting: Meeting, nbytes: int) -> _Announced:
        digest = hashlib.sha256(f"{meeting.opcode} {meeting.detail}".encode()).digest()[:16]
        return cls(program, digest, nbytes, str(meeting)[:_TEXT])

    def to_bytes(self) -> bytes:
        text = self.text.encode("utf-8", "replace")
        return _HEADER.pack(self.program.encode(), self.meeting, self.nbytes, len(text)) + text

    @classmethod
    def read(cls, data: bytes) -> tuple[_Announced, bytes]:
        """The announcement, and the rest of the message."""
        program, meeting, nbytes, length = _HEADER.unpack_from(data)
        text, rest = data[_HEADER.size : _HEADER.size + length], data[_HEADER.size + length :]
        return cls(program.rstrip(b"\0").decode(), meeting, nbytes, text.decode("utf-8", "replace")), rest


_LONGEST_FIRST = _HEADER.size + 4 * _TEXT + _INLINE


class _MpiCommunicator(Communicator):
    """A device with partners in threads of this process or of others."""

    def __init__(self, run: _Run, device: int, num_replicas: int, num_partitions: int) -> None:
        super().__init__(device, num_replicas, num_partitions)
        self._run = run

    @contextmanager
    def exchange(
        self, meeting: Meeting, sends: Mapping[int, Blocks], receives: Mapping[int, Sequence[int]]
    ) -> Iterator[Mapping[int, Blocks]]:
        """See `Communicator.exchange`."""
        run, board, me = self._run, self._run.board, self.device
        here = {target: blocks for target, blocks in sends.items() if run.is_here(target)}
        expected = {source: sizes for source, sizes in receives.items() if run.is_here(source)}
        board.put(me, meeting, here)
        try:
            sent = {t: self._send(meeting, t, blocks) for t, blocks in sends.items() if t not in here}
            far = self._receive(meeting, {s: sizes for s, sizes in receives.items() if s not in expected})
            try:
                yield {**board.take(me, meeting, expected), **far}
            finally:
                board.release(me, expected)
            run.wait(me, meeting, {t: each[1] for t, each in sent.items()}, "waits until its data are received by")
            board.leave(me, meeting, here)
        except BaseException:
            board.withdraw(me, here)
            raise

    def _send(self, meeting: Meeting, target: int, blocks: Blocks) -> tuple[list[NDArray], list[Any]]:
        """The data, which must live until they are sent, and the requests."""
        run = self._run
        nbytes = sum(b.nbytes for b in blocks)
        first = _Announced.of(run.program, meeting, nbytes).to_bytes()
        if nbytes <= _INLINE:
            first, blocks = b"".join([first, *(b.tobytes() for b in blocks)]), []
        data = [np.frombuffer(first, np.uint8), *(b for b in blocks if b.nbytes)]
        process, tag = run.places[target].process, run.tag(self.device, target)
        return data, [request for each in data for request in run.link.send(process, tag, each)]

    def _receive(self, meeting: Meeting, receives: Mapping[int, Sequence[int]]) -> dict[int, Blocks]:
        run = self._run
        if not receives:
            return {}
        places = {source: (run.places[source].process, run.tag(source, self.device)) for source in receives}
        firsts = {source: np.zeros(_LONGEST_FIRST, np.uint8) for source in receives}
        requests = {source: run.link.receive(*places[source], firsts[source]) for source in receives}
        run.wait(self.device, meeting, requests, "waits for")
        found: dict[int, Blocks] = {}
        more: dict[int, list[Any]] = {}
        for source, sizes in receives.items():
            announced, rest = _Announced.read(firsts[source].tobytes())
            self._require_same(meeting, source, announced, sum(sizes))
            if announced.nbytes <= _INLINE:
                ends = np.cumsum([0, *sizes]).tolist()
                inside = np.frombuffer(rest, np.uint8)
                found[source] = [inside[a:b] for a, b in pairwise(ends)]
            else:
                found[source] = [np.empty(size, np.uint8) for size in sizes]
                more[source] = [r for b in found[source] for r in run.link.receive(*places[source], b)]
        if more:
            run.wait(self.device, meeting, more, "waits for")
        return found

    def _require_same(self, meeting: Meeting, source: int, announced: _Announced, nbytes: int) -> None:
        run = self._run
        expected = _Announced.of(run.program, meeting, nbytes)
        here, there = f"device {self.device} (process {run.link.rank})", f"device {source} (process "
        there += f"{run.places[source].process})"
        if announced.program != expected.program:
            raise CollectiveError(
                f"processes run different programs: {here} is at {meeting} of the program {expected.program[:12]}, "
                f"{there} at {announced.text} of {announced.program[:12]}. All processes must run the same functions "
                "on arrays of the same types, in the same order"
            )
        if announced.meeting != expected.meeting:
            raise CollectiveError(
                f"devices do not come to the same collective: {here} is at {meeting}, {there} at {announced.text}"
            )
        if announced.nbytes != nbytes:
            what = f"{here} expects {nbytes} bytes from {there}"
            raise CollectiveError(f"{meeting}: {what}, which sends {announced.nbytes}")

"""Devices that are threads of one process: they meet at a board, and read each other's memory.

A board belongs to one run of a program. A device puts its blocks on it and waits until those for it are there; it
leaves when its own have been read. So large blocks are not copied on the way; small ones are, and the sender does not
wait for their readers. All waits watch the other devices: a device that waits for one that has finished or failed, or
devices that wait for each other at different places, are told so at once; only a device that runs on and on makes
others wait until the timeout.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..errors import CollectiveError
from ..support.records import dataclass
from .communicator import Blocks, Communicator, Meeting

_LOOK = 0.5
"""Seconds after which a wait checks again without a notification: for the clock, and for signals."""


_SMALL = 1 << 12
"""Bytes that are copied onto the board: that takes less time than waiting until they have been read."""


@dataclass(slots=True)
class _Posted:
    meeting: Meeting
    blocks: Blocks
    is_copy: bool
    is_read: bool = False
    """True from the moment at which the target may look at the memory."""


class Board:
    """The state that the devices of one run share. All is read and written under one lock.

    `timeout`: seconds that a device waits for others.
    """

    def __init__(self, num_devices: int, timeout: float) -> None:
        self.num_devices, self.timeout = num_devices, timeout
        self._changed = threading.Condition(threading.Lock())
        self._posted: defaultdict[tuple[int, int], deque[_Posted]] = defaultdict(deque)
        """From (source, target) to the blocks that the source has put there; the first is gone when the target has read
        it."""
        self._waits: dict[int, tuple[Meeting, Callable[[], list[int]]]] = {}
        """Of each device that waits: the place, and a function that returns the devices that it waits for."""
        self._finished: set[int] = set()
        self._failed: dict[int, BaseException] = {}

    def finish(self, device: int) -> None:
        """The device has come to the end of its program."""
        with self._changed:
            self._finished.add(device)
            self._changed.notify_all()

    def fail(self, device: int, error: BaseException) -> None:
        """The device has raised `error`: every wait raises from now on."""
        with self._changed:
            self._failed.setdefault(device, error)
            self._changed.notify_all()

    @property
    def failed(self) -> dict[int, BaseException]:
        """The exceptions of devices, in the order in which they were raised."""
        return self._failed

    def put(self, device: int, meeting: Meeting, sends: Mapping[int, Blocks]) -> None:
        """Put the device's blocks on the board."""
        if not sends:
            return
        posted = {}
        for target, blocks in sends.items():
            is_copy = sum([b.nbytes for b in blocks]) <= _SMALL
            posted[target] = _Posted(meeting, [b.copy() for b in blocks] if is_copy else blocks, is_copy)
        with self._changed:
            for target, each in posted.items():
                self._posted[device, target].append(each)
            self._changed.notify_all()

    def take(self, device: int, meeting: Meeting, receives: Mapping[int, Sequence[int]]) -> dict[int, Blocks]:
        """The blocks from each device of `receives`; they stay on the board. Waits until all are there."""
        with self._changed:
            self._wait(device, meeting, lambda: [s for s in receives if not self._posted[s, device]])
            found = {source: self._posted[source, device][0] for source in receives}
            for posted in found.values():
                posted.is_read = True
        for source, posted in found.items():
            sizes = [b.nbytes for b in posted.blocks]
            if posted.meeting != meeting:
                raise CollectiveError(
                    f"devices do not come to the same collective: device {device} is at {meeting}, device {source} at "
                    f"{posted.meeting}"
                )
            if sizes != list(receives[source]):
                raise CollectiveError(
                    f"{meeting}: device {device} expects {list(receives[source])} bytes from device {source}, which "
                    f"sends {sizes}"
                )
        return {source: posted.blocks for source, posted in found.items()}

    def release(self, device: int, receives: Mapping[int, Sequence[int]]) -> None:
        """The device has finished reading the blocks for it."""
        with self._changed:
            waited_for = False
            for source in receives:
                there = self._posted[source, device]
                if there and there[0].is_read:
                    waited_for |= not there.popleft().is_copy
            if waited_for:
                self._changed.notify_all()

    def leave(self, device: int, meeting: Meeting, sends: Mapping[int, Blocks]) -> None:
        """Wait until others have read the device's blocks, if these are its own memory."""
        with self._changed:
            self._wait(device, meeting, lambda: [t for t in sends if self._is_lent(device, t)])

    def _is_lent(self, device: int, target: int) -> bool:
        return any(not each.is_copy for each in self._posted[device, target])

    def withdraw(self, device: int, sends: Mapping[int, Blocks]) -> None:
        """Take the device's blocks off the board, because it fails: its memory may go away. Waits for devices that are
        reading the blocks."""
        with self._changed:
            for target in sends:
                there = self._posted[device, target]
                self._posted[device, target] = deque(each for each in there if each.is_read)
            while any(self._is_lent(device, target) for target in sends):
                self._changed.wait(_LOOK)

    def _wait(self, device: int, meeting: Meeting, missing: Callable[[], list[int]]) -> None:
        if not missing() and not self._failed:
            return
        self._waits[device] = meeting, missing
        end = time.monotonic() + self.timeout
        try:
            while True:
                self._raise_failure(device, meeting)
                if not missing():
                    return
                left = end - time.monotonic()
                if self._is_stuck(device):
                    self._changed.notify_all()
                    raise CollectiveError(self._report(device, meeting, missing(), "cannot complete"))
                if left <= 0:
                    what = f"is not complete after {self.timeout:g} seconds"
                    raise CollectiveError(self._report(device, meeting, missing(), what))
                self._changed.wait(min(left, _LOOK))
        finally:
            del self._waits[device]

    def _raise_failure(self, device: int, meeting: Meeting) -> None:
        for failed, error in self._failed.items():
            raise CollectiveError(
                f"{meeting}: device {device} waits for others, but device {failed} failed: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _is_stuck(self, device: int) -> bool:
        """True if no device that could let this one go on is running: all have finished, or wait themselves."""
        seen, found = {device}, [device]
        while found:
            waiting = self._waits.get(found.pop())
            if waiting is None:
                return False
            for other in waiting[1]():
                if other in self._finished:
                    return True
                if other not in seen:
                    seen.add(other)
                    found.append(other)
            if not waiting[1]():
                return False
        return True

    def _report(self, device: int, meeting: Meeting, missing: list[int], what: str) -> str:
        lines = [f"{meeting} among devices {list(meeting.members)} {what}; device {device} waits for {missing}"]
        for other in range(self.num_devices):
            if other in self._finished:
                lines.append(f"device {other} has finished its program")
            elif other in self._waits:
                place, waits_for = self._waits[other]
                lines.append(f"device {other} waits at {place} for devices {waits_for()}")
            else:
                lines.append(f"device {other} runs, and has not arrived")
        return "\n  ".join(lines)


class ThreadCommunicator(Communicator):
    """A device with partners that are all threads of this process."""

    def __init__(self, board: Board, device: int, num_replicas: int, num_partitions: int) -> None:
        super().__init__(device, num_replicas, num_partitions)
        self._board = board

    @contextmanager
    def exchange(
        self, meeting: Meeting, sends: Mapping[int, Blocks], receives: Mapping[int, Sequence[int]]
    ) -> Iterator[Mapping[int, Blocks]]:
        """See `Communicator.exchange`. The received blocks are the sender's own memory."""
        board = self._board
        board.put(self.device, meeting, sends)
        try:
            try:
                yield board.take(self.device, meeting, receives)
            finally:
                board.release(self.device, receives)
            board.leave(self.device, meeting, sends)
        except BaseException:
            board.withdraw(self.device, sends)
            raise

"""A peer is a process of its own, which is stopped while another one works.

Threads of PyTorch, OpenBLAS and others spin for a while when they have no more work, and take the processors from what
runs next; a stopped process has no spinning threads. The process lives as long as the run, builds one case after the
other, and takes a sample on command. `python -m benchmarks.peers PEER` reads commands as lines of JSON and answers in
the same way.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import about, groups, harness, limits, startup
from .harness import Case, Local, Outcome
from .startup import Chosen

PATIENCE_SECONDS = 240.0
"""How long a peer may take to build a case or for one command."""
TRANSLATED_SECONDS = 30.0
"""The same for a program that was not written for its peer: IREE takes minutes to sort, and for long loops."""
PREPARED_SECONDS = 1200.0
"""The same where nothing is measured."""


class PeerFailed(Exception):
    """A peer has no result for this case: `missing` says that it is not installed."""

    def __init__(self, message: str, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Peer:
    """A peer's process, as the measuring process sees it. It is stopped while it has no request.

    It leads a process group, so that a compiler that it started is stopped and killed with it: the C++ compiler of one
    loop took 18 GB, and the processors for the rest of the run.
    """

    def __init__(self, name: str, store: Path, python: str = sys.executable) -> None:
        self.name = name
        self.patience = PATIENCE_SECONDS
        settings = startup.environment(store) | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
        settings |= {"TORCHINDUCTOR_CACHE_DIR": str(store / "torch"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.peers", name], env=settings, cwd=startup.ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0,
        )  # fmt: skip

    def send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise PeerFailed(f"its process has ended with code {self._process.poll()}") from error

    def receive(self) -> dict[str, Any]:
        """The answer to the last command. Raises PeerFailed."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], self.patience)
        if not ready:
            self.close()
            raise PeerFailed(f"no answer in {self.patience:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise PeerFailed(f"its process has ended with code {self._process.wait()}")
        self._signal(signal.SIGSTOP)
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise PeerFailed(answer["failed"], answer["missing"])
        return answer

    def ask(self, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return self.receive()

    def calls(self, seconds: float) -> int:
        return int(self.ask(do="calls", seconds=seconds)["calls"])

    def sample(self, calls: int) -> float:
        return float(self.ask(do="sample", calls=calls)["seconds"])

    @property
    def process(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        with suppress(ProcessLookupError):  # it has ended, and so have all that it started
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue

    def _signal(self, which: signal.Signals) -> None:
        if self.alive:
            os.killpg(self._process.pid, which)


@dataclass
class Peers:
    """The processes of a run, started when a case first needs them, and again after one has died."""

    store: Path
    chosen: Chosen
    running: dict[str, Peer] = field(default_factory=dict)

    def measure(self, name: str, rounds: int, seconds: float, best: bool) -> Outcome:
        """Build a case in all peers at once, compare, and take samples of so many seconds in turns. Raises Mismatch,
        and PeerFailed if hloom fails; another peer that fails is named in the notes."""
        case = groups.make(name)
        outcome = Outcome(name, case.title, best=best)
        results: dict[str, list[np.ndarray]] = {}
        sides = {peer: self._get(peer) for peer in case.programs if self.chosen.names(peer)}
        for peer, side in sides.items():
            side.patience = TRANSLATED_SECONDS if peer in case.translated else PATIENCE_SECONDS
        failed = self._build(name, sides)
        if "hloom" in failed:
            raise failed["hloom"]
        for peer, error in failed.items():
            del sides[peer]
            outcome.notes.append(f"{peer}: not measured, {error}")
        for peer in sides:
            if peer not in self.chosen.about:
                self.chosen.about[peer] = sides[peer].ask(do="about")["text"]
            with np.load(self._file(peer)) as loaded:
                results[peer] = [loaded[key] for key in loaded.files]
            self._file(peer).unlink()
        lenient = sides.keys() - {"hloom", "jax"} if case.equal else case.translated | case.others
        for peer in [p for p in sides if p in lenient]:
            compare = harness.compare_some if peer in case.others else harness.compare
            try:
                compare({p: results[p] for p in ("hloom", peer)}, case)
            except harness.Mismatch as error:
                outcome.notes.append(f"{peer}: not measured, other results: {' '.join(str(error).split())[:160]}")
                sides.pop(peer).ask(do="drop")
        harness.compare({p: results[p] for p in sides if p not in case.others}, case)
        del results
        while not outcome.samples:
            try:
                outcome.samples = harness.interleave(sides, rounds, seconds)
            except PeerFailed as error:  # as IREE does where the calls of a long loop fill the memory
                dead = [peer for peer, side in sides.items() if not side.alive]
                if "hloom" in dead or not dead:
                    raise
                for peer in dead:
                    del sides[peer]
                    outcome.notes.append(f"{peer}: not measured, {error}")
        outcome.limit = sides["hloom"].ask(do="limit")["seconds"]
        for peer, side in sides.items():
            if (peak := side.ask(do="peak")["bytes"]) is not None:
                outcome.peak[peer] = peak
            side.ask(do="drop")
        return outcome

    def prepare(self, name: str) -> dict[str, PeerFailed]:
        """Build a case in all peers that keep what they compile, and return the failures: a later process measures
        it."""
        sides = {peer: self._get(peer) for peer in sorted(groups.make(name).others) if self.chosen.names(peer)}
        for side in sides.values():
            side.patience = PREPARED_SECONDS
        failed = self._build(name, sides)
        for peer in sides.keys() - failed:
            self._file(peer).unlink()
            sides[peer].ask(do="drop")
        return failed

    def _build(self, name: str, sides: Mapping[str, Peer]) -> dict[str, PeerFailed]:
        """Build a case in all peers at once, and write their results; returns the failures."""
        failed: dict[str, PeerFailed] = {}
        for act in (
            lambda peer: sides[peer].send(do="build", case=name, to=str(self._file(peer))),
            lambda peer: sides[peer].receive(),
        ):
            for peer in [p for p in sides if p not in failed]:
                try:
                    act(peer)
                except PeerFailed as error:
                    failed[peer] = error
        return failed

    def _file(self, peer: str) -> Path:
        """The results of the case that the peer has built."""
        return self.store / f"result-{peer}.npz"

    def _get(self, name: str) -> Peer:
        if name not in self.running or not self.running[name].alive:
            self.running[name] = Peer(name, self.store, self.chosen.python(name))
        return self.running[name]

    def processes(self) -> list[int]:
        """Of the peers that run."""
        return [peer.process for peer in self.running.values() if peer.alive]

    def close(self) -> None:
        for peer in self.running.values():
            peer.close()


@contextmanager
def started(store: Path, chosen: Chosen) -> Iterator[Peers]:
    """The peers; their processes end with the block."""
    peers = Peers(store, chosen)
    try:
        yield peers
    finally:
        peers.close()


# --------------------------------------------------------------------------------------- in the process of a peer


class Worker:
    """One case at a time, built and run."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._case: Case | None = None
        self._side: Local | None = None
        self._before = 0

    def build(self, case: str, to: str) -> dict[str, Any]:
        """Build and run once; the results go to a file."""
        self.drop()
        self._before = _resident()
        self._case = groups.make(case)
        self._side = Local(self._case.programs[self._peer](), self._case.wait_each, settle=0.0)
        found = self._side.results()
        np.savez(to, *found)
        del found
        gc.collect()
        gc.disable()  # as timeit does
        return {}

    def calls(self, seconds: float) -> dict[str, Any]:
        assert self._side is not None
        return {"calls": self._side.calls(seconds)}

    def sample(self, calls: int) -> dict[str, Any]:
        assert self._side is not None
        return {"seconds": self._side.sample(calls)}

    def peak(self) -> dict[str, Any]:
        """How much more memory the process has at most during two calls than before the case was built."""
        assert self._side is not None
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        except OSError:
            return {"bytes": None}
        self._side.sample(1)
        return {"bytes": max(0, _resident("VmHWM") - self._before)}

    def limit(self) -> dict[str, Any]:
        """The seconds that a call must take at least, by what bounds it."""
        assert self._side is not None
        return {"seconds": {} if self._side.work is None else limits.seconds(self._side.work())}

    def about(self) -> dict[str, Any]:
        return {"text": about.about(self._peer)}

    def drop(self) -> dict[str, Any]:
        self._case = self._side = None
        gc.enable()
        gc.collect()
        return {}


def _resident(what: str = "VmRSS") -> int:
    """Bytes, where the system tells."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(what)), 0)


def work(peer: str) -> None:
    """Answer commands until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    _end_with_parent()
    worker = Worker(peer)
    names = ("build", "calls", "sample", "peak", "limit", "about", "drop")
    acts: dict[str, Callable[..., dict[str, Any]]] = {name: getattr(worker, name) for name in names}
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = acts[command.pop("do")](**command)
        except Exception as error:
            traceback.print_exc()
            said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            answer = {"failed": said, "missing": isinstance(error, ImportError)}
            if isinstance(error, ModuleNotFoundError):
                answer["failed"] = "not installed"
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _end_with_parent() -> None:
    """A stopped process would stay for ever if the measuring process were killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    work(sys.argv[1])

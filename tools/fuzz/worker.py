"""A child process that checks cases, so that a crash, a hang or a lack of memory is a result like others.

The parent sends a case, or the seed of a program and the sets of data that it shall run with. The child sends the first
case back before it checks it, and in the end the outcomes; meanwhile it notes in shared memory how far it is. One child
checks many cases; it is replaced when it is gone, too slow, or too large.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from .case import Case, Outcome, Verdict, found

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORY = 6 << 30
"""Bytes of address space that a child may have: more is a MemoryError."""
LARGEST_CHILD = 1536 << 20
"""Bytes that it may hold between two cases; a larger child is replaced."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one case, in seconds. The machine may be busy: what counts is the child's own processor time.

    `idle`: how long it may use none at all, for which a deadlock is the only reason.
    """

    processor: float = 60.0
    idle: float = 300.0


_STARTING = 300.0
"""Seconds in which a child must have imported the library."""
ORACLES = ("jax", "xla")
"""Stages in which the library is not at work: a crash there is no defect of its."""
_NOTE = 120
"""Bytes in which the child says how far it is: the set's number and the stage."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The cases of one program: the sets `first`, `first + 1`, ... of its data, `count` in all."""

    kind: str
    seed: int
    first: int = 0
    count: int = 1


@dataclass
class Worker:
    """A child and the way to talk to it. `prepare`: "module:function", which the child calls first; tests break
    something in it."""

    limits: Limits = field(default_factory=Limits)
    prepare: str = ""
    oracle: bool = True
    """Compare with JAX where it is installed."""

    def __post_init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._log: IO[bytes] | None = None
        self._note: Any = None
        self.last_case: Case | None = None
        self.oracle_crashes = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self.stop()

    def check(self, case: Case | Drawn) -> Outcome:
        """The outcome of a case, or of the last one of a program's; that case is then `last_case`."""
        return self.outcomes(case)[-1]

    def outcomes(self, asked: Case | Drawn) -> list[Outcome]:
        """The outcomes of a program's cases, until one of them is a defect; none but the first, if that does not run.
        The case of the last one is then `last_case`."""
        self.last_case = asked if isinstance(asked, Case) else None
        pipe = self._started()
        try:
            pipe.send(asked)
        except (BrokenPipeError, OSError):
            self.stop()
            pipe = self._started()
            pipe.send(asked)
        before = latest = self._processor_seconds()
        moved = time.monotonic()
        while True:
            with suppress(EOFError, OSError):
                if pipe.poll(0.2):
                    message = pipe.recv()
                    if isinstance(message, Case):
                        self.last_case = message
                        continue
                    made: list[Outcome] = message.outcomes
                    found_by_interrupt = made[-1].verdict is Verdict.FOUND and message.kind == "interrupt"
                    if message.too_large or found_by_interrupt:  # the next interrupt would show the same
                        self.stop()
                    return made
            if self._process is None or not self._process.is_alive():
                return self._ended(self._crashed)
            now = self._processor_seconds()
            if now != latest:
                latest, moved = now, time.monotonic()
            used = now - before
            if used > self.limits.processor or time.monotonic() - moved > self.limits.idle:
                return self._ended(lambda stage: self._hung(stage, used))  # noqa: B023  # called at once

    def _ended(self, judge: Callable[[str], Outcome]) -> list[Outcome]:
        """The outcomes of a child that does not say them: those before it was at its last case were good."""
        number, _, stage = self._note.value.decode(errors="replace").partition(" ")
        if self.last_case is not None and self.last_case.data != int(number or 0):
            from . import kinds

            self.last_case = kinds.with_data(self.last_case, int(number))
        return [judge(stage)]

    def _crashed(self, stage: str) -> Outcome:
        assert self._process is not None
        self._process.join(10)
        code, trace = self._process.exitcode, self._read_log()
        self.stop()
        if stage in ORACLES:
            self.oracle_crashes += 1
            return Outcome(Verdict.SKIPPED, f"{stage} crashed")
        where = next((line.strip() for line in trace.splitlines() if str(ROOT) in line), "")
        return found(f"crash in {stage}: {where}", f"the process ended with code {code} in stage {stage}\n{trace}")

    def _hung(self, stage: str, used: float) -> Outcome:
        trace = self._stack()
        self.stop()
        if stage in ORACLES:
            return Outcome(Verdict.SKIPPED, f"{stage} takes too long")
        return found(f"hang in {stage}", f"after {used:.0f} s of processor time in stage {stage}\n{trace}")

    def _stack(self) -> str:
        """Where the child is."""
        if self._process is None or self._process.pid is None:
            return ""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, _SHOW_STACK)
        time.sleep(0.5)
        return self._read_log()

    def _read_log(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-6000:]

    def _processor_seconds(self) -> float:
        """Of the child, from /proc; the clock where there is none."""
        if self._process is None:
            return 0.0
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _started(self) -> Connection:
        if self._pipe is not None and self._process is not None and self._process.is_alive():
            return self._pipe
        self.stop()
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        self._log = tempfile.NamedTemporaryFile(prefix="fuzz-child-")  # noqa: SIM115  # closed by stop
        self._note = context.RawArray("c", _NOTE)
        arguments = (theirs, self._note, self._log.name, self.prepare, self.oracle)
        self._process = context.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._pipe = mine
        if not mine.poll(_STARTING) or not self._is_ready(mine):
            text = self._read_log()
            self.stop()
            raise RuntimeError(f"the fuzzer's child process did not start:\n{text}")
        return mine

    @staticmethod
    def _is_ready(pipe: Connection) -> bool:
        try:
            return bool(pipe.recv() == _READY)
        except (EOFError, OSError):
            return False

    def stop(self) -> None:
        """End the child, if there is one."""
        if self._process is not None and self._process.is_alive():
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        if self._log is not None:
            self._log.close()
        self._process = self._pipe = self._log = None


# ---- in the child

_READY = "ready"
_SHOW_STACK = signal.SIGUSR1


@dataclass(frozen=True, slots=True)
class Answer:
    """The last message of the child."""

    kind: str
    outcomes: list[Outcome]
    too_large: bool


def serve(pipe: Connection, note: Any, log: str, prepare: str, oracle: bool) -> None:
    """Check cases until the parent is gone: the child's main function."""
    trace = open(log, "w")  # noqa: SIM115  # as long as the process lives
    os.dup2(trace.fileno(), 2)  # XLA and LLVM print messages before they end the process
    faulthandler.enable(trace)
    faulthandler.register(_SHOW_STACK, trace)
    os.environ.setdefault("HLOOM_CACHE_DIR", str(ROOT / "build" / "fuzz-kernels"))
    os.environ.setdefault("HLOOM_VERIFY_PASSES", "1")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    from . import kinds  # the library is imported in the child only, after the environment is set

    kinds.use_oracle(oracle)
    if prepare:
        module, _, function = prepare.partition(":")
        getattr(__import__(module, fromlist=[function]), function)()
    pipe.send(_READY)
    while True:
        try:
            asked: Case | Drawn = pipe.recv()
        except (EOFError, OSError):
            return
        trace.seek(0)
        trace.truncate()
        outcomes = _outcomes(asked, pipe, note)
        large = outcomes[-1].verdict is not Verdict.FOUND and _resident() > LARGEST_CHILD
        pipe.send(Answer(asked.kind, outcomes, large))


def _outcomes(asked: Case | Drawn, pipe: Connection, note: Any) -> list[Outcome]:
    """Draws and checks the cases one after the other."""
    from . import kinds

    if isinstance(asked, Case):
        return [_outcome_of(lambda: asked, note)]

    def drawn() -> Case:
        made = kinds.KINDS[asked.kind].draw(asked.seed)
        made = kinds.with_data(made, asked.first) if asked.first else made
        pipe.send(made)
        base.append(made)
        return made

    base: list[Case] = []
    made = [_outcome_of(drawn, note)]
    if made[0].verdict in (Verdict.FOUND, Verdict.REFUSED, Verdict.SKIPPED) or asked.kind not in kinds.WITH_DATA:
        return made
    for number in range(asked.first + 1, asked.first + asked.count):
        case = kinds.with_data(base[0], number)
        made.append(_outcome_of(lambda: case, note))  # noqa: B023  # called at once
        if made[-1].verdict is Verdict.FOUND:
            pipe.send(case)
            break
    return made


def _outcome_of(case_of: Callable[[], Case], note: Any) -> Outcome:
    """Checks a case; an error that the check does not expect is a defect."""
    from . import kinds

    text, number = "", 0

    def stage(name: str) -> None:
        note.value = f"{number} {name}".encode()[: _NOTE - 1]

    stage("generator")
    try:
        case = case_of()
        text, number = case.program, case.data
        made = kinds.KINDS[case.kind].check(case, stage)
    except MemoryError:
        made = Outcome(Verdict.SKIPPED, "out of memory")
    except Exception as error:
        made = found(signature_of(error), traceback.format_exc())
    if made.verdict is Verdict.FOUND and kinds.is_known(made.signature, f"{made.message}\n{text}"):
        made = Outcome(Verdict.KNOWN, made.message)
    return made


def signature_of(error: BaseException, stage: str = "") -> str:
    """The class of an error and the function of the library in which it was raised."""
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        path = frame.filename
        if str(ROOT) in path and "/tools/fuzz/" not in path and "/tests/" not in path and "/.venv/" not in path:
            where = f"{Path(path).relative_to(ROOT)}:{frame.name}"
    return f"{stage + ': ' if stage else ''}{type(error).__name__} in {where or 'the fuzzer'}"


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

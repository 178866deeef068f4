"""jit_scope: operations outside of jit that are collected, compiled together, and run when a value is needed.

Within the block each operation is checked and recorded, and its result is an array like any other, with a deferred
value (`pending.py`, `deferral.py`). Reading the value (`float(x)`, ``if x > 0``, `print`, NumPy, a jitted function)
computes it: the recorded operations become one program, which is found again when the same operations come again
(`steps.py`, `clusters.py`). The setting `hloom_jit_level` does this for the whole process.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from contextlib import ContextDecorator
from types import CodeType
from typing import Any, Self

from ...hlo.kernel_texts import KernelTexts
from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.tables import Table
from ...hlo.support.tracebacks import boundary
from .. import core, execution
from ..caches import on_clear
from ..source import user_frame
from .clusters import MAX_CLUSTERS, Cluster, Settled
from .deferral import UNSET, Recorder, recorder, restore, start

_state = core.thread_state()
_MAX_ENTRIES = 10_000
"""In a program that never ends, the oldest entries are dropped."""


class Collected:
    """The events in a scope, or in the whole session."""

    def __init__(self) -> None:
        self.clusters: dict[Cluster, int] = {}
        """How often each program ran here."""
        self.forced: dict[Any, int] = {}
        """Why a batch was settled, and the user's file and line."""
        self.single: Counter[tuple[str, str]] = Counter()
        """Operations that ran alone, and why."""
        self.compiled = 0

    def saw(self, done: Settled, reason: str) -> None:
        """A batch was settled."""
        frame = user_frame()
        key = (reason, frame.f_code, frame.f_lineno) if frame is not None else (reason, None, 0)
        self.forced[key] = self.forced.get(key, 0) + 1
        if done.cluster is not None:
            self.clusters[done.cluster] = self.clusters.get(done.cluster, 0) + 1
            self.compiled += done.is_new
        for opcode in done.single:
            self.single[opcode.value, done.reason] += 1
        if len(self.forced) > _MAX_ENTRIES:
            self.forced.clear()
        if len(self.clusters) > MAX_CLUSTERS:
            self.clusters.clear()

    def saw_alone(self, what: str, reason: str) -> None:
        """Count an operation that was not deferred."""
        self.single[what, reason] += 1

    def to_text(self) -> str:
        """The report."""
        runs = sum(self.clusters.values())
        parts = [f"{len(self.clusters)} clusters, {self.compiled} compiled here, {runs} runs"]
        if self.clusters:
            rows = [
                (c.name, str(c.operations), str(n), f"{c.seconds * 1e3:.1f}", _lines(c))
                for c, n in self.clusters.items()
            ]
            table = Table(("cluster", "operations", "runs", "ms to compile", "lines"), rows, frozenset({1, 2, 3}))
            parts.append(table.to_text())
        if self.forced:
            most = sorted(self.forced.items(), key=lambda item: -item[1])
            needed = [(reason, str(n), _place(code, line)) for (reason, code, line), n in most]
            parts.append(Table(("needed", "times", "at"), needed, frozenset({1})).to_text())
        if self.single:
            alone = [(what, str(n), reason) for (what, reason), n in self.single.most_common()]
            parts.append(Table(("ran by itself", "times", "because"), alone, frozenset({1})).to_text())
        return "\n\n".join(parts)


def _place(code: CodeType | None, line: int) -> str:
    return "<unknown>" if code is None else f"{code.co_filename}:{line} (in {code.co_name})"


def _lines(cluster: Cluster) -> str:
    shown = [re.split(r"[\\/]", line)[-1] for line in cluster.lines]
    return ", ".join(shown[:4]) + (f", and {len(shown) - 4} more" if len(shown) > 4 else "")


class Program:
    """A program that was made of operations outside of jit: its HLO, its kernels.

    >>> import hloom, hloom.numpy as jnp
    >>> with hloom.jit_scope() as scope:
    ...     y = jnp.sin(jnp.ones(3)) + 1
    >>> (program,) = scope.programs()
    >>> print(program.operations, "sine" in program.as_text())
    3 True
    """

    def __init__(self, cluster: Cluster, runs: int) -> None:
        self._cluster = cluster
        self.name: str = cluster.name
        self.operations: int = cluster.operations
        """How many operations it is made of."""
        self.runs = runs
        """How often it ran in the scope."""

    @property
    def module(self) -> Any:
        """The HLO as it was recorded, before any pass."""
        return self._cluster.module

    def as_text(self, *, optimized: bool = False, metadata: bool = False) -> str:
        """The HLO as it was recorded, or after all passes; with the user's lines."""
        if optimized:
            assert self._cluster.executable is not None, f"{self.name} is not compiled"
            return self._cluster.executable.as_text(metadata=metadata)
        return str(self._cluster.module.as_text(metadata=metadata))

    def kernels(self) -> KernelTexts:
        """The Numba source of each kernel, by name."""
        assert self._cluster.executable is not None, f"{self.name} is not compiled"
        return KernelTexts(self._cluster.executable.kernels())

    def __repr__(self) -> str:
        return f"<Program {self.name}: {self.operations} operations, {self.runs} runs>"


class JitScope(ContextDecorator):
    """A block in which operations are collected. Made by `jit_scope`.

    >>> isinstance(hloom.jit_scope(), hloom.stages.JitScope)
    True
    """

    def __init__(self, compile_ops: bool) -> None:
        self._compile = compile_ops
        self._collected = Collected()
        self._entered: list[Any] = []

    def _recreate_cm(self) -> JitScope:  # called once a call of a decorated function
        other = JitScope(self._compile)
        other._collected = self._collected
        return other

    def __enter__(self) -> Self:
        before = vars(_state).get("recorder", UNSET)
        outer = recorder()
        if self._compile:
            start()
            execution.BEFORE_DONATING.append(_flush_before_donating)
            watchers = [*([] if outer is None else outer.watchers), self._collected]
            inner = Recorder(watchers, 1)
            if outer is not None:  # pending operations stay where they are, and their arrays may be used here
                outer.watchers, outer.often, inner.watchers, inner.often = watchers, 1, outer.watchers, outer.often
                self._entered.append((before, outer, inner.watchers, inner.often))
            else:
                _state.recorder = inner
                self._entered.append((before, inner, [], 0))
        else:
            if outer is not None:
                outer.flush("the end of the scope")
            _state.recorder = None
            self._entered.append((before, None, [], 0))
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        before, own, watchers, often = self._entered.pop()
        try:
            if own is not None:
                if kind is None and _state.recorder is own:
                    own.flush("the end of the scope")
                elif not often:
                    own.drop()  # recorded operations are computed when their results are read
        finally:
            if own is not None:
                execution.BEFORE_DONATING.remove(_flush_before_donating)
            if often:
                own.watchers, own.often = watchers, often
            else:
                if own is not None:
                    own.close()
                if own is None or _state.recorder is own:
                    restore(before)

    @boundary
    def report(self) -> str:
        """The programs and how often each ran, the reads that forced values, and the operations that ran alone, with
        reasons.

        >>> with hloom.jit_scope() as scope:
        ...     y = jnp.sin(jnp.ones(3)) + 1
        >>> print(scope.report().splitlines()[0])
        1 clusters, 1 compiled here, 1 runs
        """
        return self._collected.to_text()

    @boundary
    def programs(self) -> list[Program]:
        """The programs that ran in the scope.

        >>> with hloom.jit_scope() as scope:
        ...     y = jnp.sin(jnp.ones(3)) + 1
        >>> [program.runs for program in scope.programs()]
        [1]
        """
        return [Program(c, n) for c, n in self._collected.clusters.items()]

    def __repr__(self) -> str:
        return f"<jit_scope: {len(self._collected.clusters)} clusters>"


@boundary
def jit_scope(compile_ops: bool = True) -> JitScope:
    """Within the block, or the decorated function, operations outside of jit are collected and compiled together.

    They run when a value is needed, or at the end. The sequence of operations decides which program runs, so that a
    loop compiles its step once. Shapes and dtypes are checked at once, at the user's line; results equal those of the
    same operations in jit. Some operations run alone: loops, callbacks, jitted functions, results that are checked
    (`debug_nans`). `report()` of the scope lists them, with reasons.

    compile_ops: False: operations run at once, for all settings around the block.

    A scope is of the thread that enters it. Scopes may be nested: they share one record, and the end of each waits for
    it. Source: TensorFlow's `experimental_jit_scope`.

    >>> x = jnp.arange(4.0)
    >>> with hloom.jit_scope() as scope:
    ...     for _ in range(100):
    ...         x = jnp.sin(x) + 0.5 * x
    >>> len(scope.programs()) < 4
    True
    """
    if not isinstance(compile_ops, bool):
        raise TypeError(f"jit_scope: compile_ops must be True or False, not {compile_ops!r}")
    return JitScope(compile_ops)


# ---- the whole session

_lock = fork_lock(Order.LEAF)


class _Session:
    """The recorder of threads that have not deferred an operation yet, while the setting is on. Each gets its own."""

    def __init__(self) -> None:
        self.collected = Collected()
        self.recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()
        self.often = 2
        self.is_on = False

    def begin(self) -> Recorder:
        """This thread's recorder from now on."""
        made = Recorder([self.collected], self.often)
        with _lock:
            self.recorders.add(made)
        _state.recorder = made
        return made


_session = _Session()
on_clear(lambda: _session.collected.clusters.clear())


def change_level(level: int) -> None:
    """Put operations off in the whole process: `hloom_jit_level`. 1: a repeated structure is compiled; 2: all is."""
    with _lock:
        recorders = list(_session.recorders)
        _session.recorders.clear()
    for each in recorders:
        each.close()
    if bool(level) != _session.is_on:
        hooks = execution.BEFORE_DONATING
        (hooks.append if level else hooks.remove)(_flush_before_donating)
        _session.is_on = bool(level)
    if level:
        start()
        _session.often = 2 if level == 1 else 1
        core.defer_in_all_threads(_session)
    else:
        core.defer_in_all_threads(None)
    found = recorder()  # of this thread: other threads follow when they next compute
    if found is None and not level:
        vars(_state).pop("recorder", None)


@boundary
def jit_scope_report() -> str:
    """The report of `hloom_jit_level` for this process, as `JitScope.report` gives it for a scope.

    >>> "clusters" in hloom.jit_scope_report()
    True
    """
    return _session.collected.to_text()


def _flush_before_donating() -> None:
    """A hook while a scope is open in any thread, or the setting is on: calls that donate are slower meanwhile."""
    found = _state.recorder
    if found.__class__ is Recorder:
        found.flush("an array is given away")

"""Defects that `tests/whole/test_fuzz.py` puts into the child process of the fuzzer, to see that they are found."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from hloom.autodiff.rules import elementwise as derivatives
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.patterns import binary
from hloom.hlo.passes.rules import RuleSet, rule
from hloom.hlo.passes.simplify.algebraic_simplifier import RULES, AlgebraicSimplifier
from hloom.numba_backend import pipeline
from hloom.numba_backend.emit import elementwise, movement
from hloom.numba_backend.runtime import store_disk
from hloom.tracer import core

from .guarded import GuardedProgram


def wrong_rule() -> None:
    """a - b = b - a."""

    def wrong_subtract(i: HloInstruction) -> HloInstruction | None:
        a, b = i.operands
        return binary(Opcode.SUBTRACT, b, a) if a.opcode is not Opcode.SUBTRACT and a is not b else None

    rules = RuleSet((rule(wrong_subtract, Opcode.SUBTRACT), *RULES))
    pipeline.AlgebraicSimplifier = lambda: AlgebraicSimplifier(rules=rules)  # type: ignore[misc,assignment]


def wrong_kernel() -> None:
    """The larger of two numbers is the smaller one, in compiled code."""
    elementwise._EXTREMA[Opcode.MAXIMUM] = ("minimum", "<")


def wrong_memory() -> None:
    """Slices and updates at runtime indices are not kept inside of their arrays."""

    def unclamped(e: object, instruction: HloInstruction, first: int) -> list[object]:
        return [e.value(start, ()) for start in instruction.operands[first:]]  # type: ignore[attr-defined]

    movement.clamped_starts = unclamped  # type: ignore[assignment]


def wrong_derivative() -> None:
    """Give the hyperbolic tangent the derivative of the sine."""
    derivatives.JVP._rules[Opcode.TANH] = derivatives.JVP._rules[Opcode.SIN]


_to_text = HloModule.to_text


def wrong_text() -> None:
    """A greater-than is printed as a less-than."""
    HloModule.to_text = lambda self: _to_text(self).replace("direction=GT", "direction=LT")  # type: ignore[method-assign]


def crash() -> None:
    """A module with an addition ends the process when it is printed."""

    def to_text(self: HloModule) -> str:
        if any(i.opcode is Opcode.ADD for i in self.instructions()):
            os.abort()
        return _to_text(self)

    HloModule.to_text = to_text  # type: ignore[method-assign,assignment]


def crash_of_subnormals() -> None:
    """Compiled code ends the process if a float of 32 bits that it gets is subnormal."""
    run = GuardedProgram.run

    def crash(self: GuardedProgram, arguments: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        if any(a.dtype == np.float32 and ((a != 0) & (abs(a) < np.finfo(a.dtype).tiny)).any() for a in arguments):
            os.abort()
        return run(self, arguments)

    GuardedProgram.run = crash  # type: ignore[method-assign]


def takes_all() -> None:
    """Eviction takes all files of the store's folder."""
    store_disk._OWN_NAME = re.compile(".*")


def left_behind() -> None:
    """An interrupt may come between a change and the block that undoes it."""

    @contextmanager
    def set_current_trace(trace: core.Trace) -> Iterator[None]:
        state = core.thread_state()
        before = state.trace, state.direct
        state.trace, state.direct = trace, abs(trace is core.EVAL)
        core.thread.running = None
        len(before)
        yield
        state.trace, state.direct = before
        core.thread.running = core.thread.settings

    for module in list(sys.modules.values()):
        if getattr(module, "set_current_trace", None) is core.set_current_trace and module is not core:
            module.set_current_trace = set_current_trace  # type: ignore[attr-defined]


def hang() -> None:
    """A module with a tanh is printed for ever."""

    def to_text(self: HloModule) -> str:
        has_tanh = any(i.opcode is Opcode.TANH for i in self.instructions())
        while has_tanh:  # no calls: faulthandler may crash when it reads frames that come and go (CPython 3.11)
            pass
        return _to_text(self)

    HloModule.to_text = to_text  # type: ignore[method-assign,assignment]


def deadlock() -> None:
    """A module with a tanh waits for ever when it is printed."""

    def to_text(self: HloModule) -> str:
        if any(i.opcode is Opcode.TANH for i in self.instructions()):
            threading.Event().wait()
        return _to_text(self)

    HloModule.to_text = to_text  # type: ignore[method-assign,assignment]

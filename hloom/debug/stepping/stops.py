"""Where to stop: at a line or an instruction, or where a value is not what it should be."""

from __future__ import annotations

from collections.abc import Callable
from os.path import basename
from typing import Any
from weakref import WeakSet

import numpy as np

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ...hlo.support.value_tree import leaves_of
from .execution import Frame, Value

_GIVEN = frozenset({
    Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CALL, Opcode.CONDITIONAL,
    Opcode.WHILE,
})  # fmt: skip
"""Instructions that compute nothing themselves."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One reason to stop: `text` for people; `holds(frame, instruction, value)` after each instruction."""

    text: str
    holds: Callable[[Frame, HloInstruction, Value], bool]
    in_state: Callable[[Value], bool] | None = None
    """Of a stop for values that stay, once they are there: whether a loop's state has one. Long loops are then searched
    with compiled code."""


def _any(test: Callable[[Any], Any]) -> Callable[[Value], bool]:
    return lambda value: any(x.dtype.kind in "fcV" and x.size > 0 and bool(test(x).any()) for x in leaves_of(value))


def _values(text: str, has: Callable[[Value], bool], stays: bool) -> Stop:
    def holds(frame: Frame, i: HloInstruction, value: Value) -> bool:
        return i.opcode not in _GIVEN and has(value) and not any(has(frame.values[o]) for o in i.operands)

    return Stop(text, holds, has if stays else None)


def nan() -> Stop:
    """Where a value has a NaN, and no operand has one."""
    return _values("a NaN", _any(np.isnan), True)


def infinity() -> Stop:
    """Where a value has an infinity, and no operand has one."""
    return _values("an infinity", _any(np.isinf), True)


def outside(low: float, high: float) -> Stop:
    """Where a number is below `low`, above `high`, or a NaN, and none of the operands' is. Truth values and indices
    count as well."""

    def has(value: Value) -> bool:
        return any(x.size > 0 and x.dtype.kind != "c" and not bool(((x >= low) & (x <= high)).all())
                   for x in leaves_of(value))  # fmt: skip

    return _values(f"a value outside of {low:g} to {high:g}", has, False)


def at_line(file: str | None, line: int) -> Stop:
    """At the first instruction of a line, once in each iteration or branch. file: its name, with or without folders;
    None: any file."""
    seen: WeakSet[Frame] = WeakSet()

    def holds(frame: Frame, i: HloInstruction, value: Value) -> bool:
        m = i.metadata
        if m is None or not m.source_file:
            return False
        here = m.source_line == line and (file is None or m.source_file == file or basename(m.source_file) == file)
        if not here or frame.activation in seen:
            return False
        seen.add(frame.activation)
        return True

    return Stop(f"{file or ''}:{line}", holds)


def at_instruction(name: str) -> Stop:
    """At the instruction with this name, or at each one with this opcode or op_name."""
    wanted = name.removeprefix("%")

    def holds(frame: Frame, i: HloInstruction, value: Value) -> bool:
        op_name = i.metadata.op_name if i.metadata else ""
        return wanted in (i.name, i.opcode.value, op_name, op_name.rpartition("/")[2])

    return Stop(f"%{wanted}", holds)


def when(text: str, holds: Callable[[Frame], Any]) -> Stop:
    """Where an expression is true. An expression that has no value yet is not."""

    def test(frame: Frame, i: HloInstruction, value: Value) -> bool:
        try:
            return bool(holds(frame))
        except NameError:
            return False

    return Stop(f"where {text}", test)

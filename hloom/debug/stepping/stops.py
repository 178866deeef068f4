"""Where to stop: at a line or an instruction, or where a value is not what it should be."""

from __future__ import annotations

from collections.abc import Callable
from os.path import basename
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from ...hlo.builder import make_constant, make_instruction
from ...hlo.element_type import ElementType, element_type_of
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.elementwise import ComparisonDirection
from ...hlo.ops.movement import BroadcastAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ...hlo.support.value_tree import leaves_of
from .execution import Frame, Value
from .loops import Mask, Test, compare
from .variables import named

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
    in_loops: Test | None = None
    """Of a stop for bad elements: the same in HLO. Long loops are then searched with compiled code."""


def _values(
    text: str, of: str | None, bad: Callable[[Any], Any], can: Callable[[ElementType], bool], mask: Mask
) -> Stop:
    """Where a value has bad elements and no operand has, or where the value of a name has some. can: whether elements
    of a type can be bad. NumPy's kind of a dtype does not say it: it is the same for int4 and bfloat16."""

    def has(value: Value) -> bool:
        return any(can(element_type_of(x.dtype)) and x.size > 0 and bool(bad(x).any()) for x in leaves_of(value))

    def holds(frame: Frame, i: HloInstruction, value: Value) -> bool:
        return i.opcode not in _GIVEN and has(value) and not any(has(frame.values[o]) for o in i.operands)

    def in_loops(x: HloInstruction) -> HloInstruction | None:
        return mask(x) if can(x.shape.element) else None

    if of is None:
        return Stop(text, holds, Test(in_loops))

    known: WeakKeyDictionary[HloComputation, HloInstruction | None] = WeakKeyDictionary()

    def wanted(computation: HloComputation) -> HloInstruction | None:
        if computation not in known:
            known[computation] = named(computation, of)
        return known[computation]

    def is_there(frame: Frame, i: HloInstruction, value: Value) -> bool:
        return i is wanted(frame.computation) and has(value)

    return Stop(f"{text} in {of}", is_there, Test(in_loops, wanted))


def _is_inexact(element: ElementType) -> bool:
    return element.is_inexact


def nan(of: str | None = None) -> Stop:
    """Where a value has a NaN, and no operand has one. of: where the value of this name has one."""
    return _values("a NaN", of, np.isnan, _is_inexact, lambda x: compare(x, x, ComparisonDirection.NE))


def infinity(of: str | None = None) -> Stop:
    """Where a value has an infinity, and no operand has one. of: where the value of this name has one."""

    def mask(x: HloInstruction) -> HloInstruction:
        if x.shape.element.is_complex:
            parts = [mask(make_instruction(op, (x,))) for op in (Opcode.REAL, Opcode.IMAG)]
            return make_instruction(Opcode.OR, parts)
        odd = make_instruction(Opcode.NOT, (make_instruction(Opcode.IS_FINITE, (x,)),))
        return make_instruction(Opcode.AND, (odd, compare(x, x, ComparisonDirection.EQ)))

    return _values("an infinity", of, np.isinf, _is_inexact, mask)


def outside(low: float, high: float, of: str | None = None) -> Stop:
    """Where a number is below `low`, above `high`, or a NaN, and none of the operands' is. Truth values and indices
    count as well. of: where the value of this name has one."""

    def bad(x: Any) -> Any:
        return ~((x >= low) & (x <= high))

    def mask(x: HloInstruction) -> HloInstruction:
        if not x.shape.element.is_floating:  # as NumPy compares
            x = make_instruction(Opcode.CONVERT, (x,), shape=Shape.array(_F64, x.shape.dimensions))
        limits = [_filled(number, x.shape) for number in (low, high)]
        above = compare(x, limits[0], ComparisonDirection.GE)
        below = compare(x, limits[1], ComparisonDirection.LE)
        return make_instruction(Opcode.NOT, (make_instruction(Opcode.AND, (above, below)),))

    return _values(f"a value outside of {low:g} to {high:g}", of, bad, lambda element: not element.is_complex, mask)


_F64 = element_type_of(np.dtype(np.float64))


def _filled(number: float, shape: Shape) -> HloInstruction:
    constant = make_constant(np.array(number, shape.element.dtype))
    return make_instruction(Opcode.BROADCAST, (constant,), BroadcastAttributes(()), shape)


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

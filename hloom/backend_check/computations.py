"""The computations that op cases apply: reducers, combiners, comparators, bodies of loops."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..hlo import (
    ElementType,
    HloComputation,
    HloInstruction,
    Opcode,
    Shape,
    make_computation,
    make_constant,
    make_instruction,
    make_parameter,
)
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType

O = Opcode  # noqa: E741
D = ComparisonDirection


def computation(
    name: str, body: Callable[..., HloInstruction], *shapes: Shape | ElementType
) -> HloComputation:
    """The computation with the root `body(*parameters)`. Its parameters have these shapes, an element type for a
    scalar, and the names of the parameters of `body`."""
    names = inspect.signature(body).parameters
    parameters = [
        make_parameter(k, s if isinstance(s, Shape) else Shape.array(s), n)
        for k, (s, n) in enumerate(zip(shapes, names, strict=True))
    ]
    return make_computation(name, body(*parameters), parameters)


def op(opcode: Opcode, *operands: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, operands)


def compare(direction: D, x: HloInstruction, y: HloInstruction, kind: ComparisonType | None = None) -> HloInstruction:
    return make_instruction(O.COMPARE, (x, y), CompareAttributes(direction, kind))


def binary_computation(opcode: Opcode, element_type: ElementType, *, swapped: bool = False) -> HloComputation:
    """The reducer that is one op on its two scalar parameters."""

    def body(x: HloInstruction, y: HloInstruction) -> HloInstruction:
        return op(opcode, y, x) if swapped else op(opcode, x, y)

    return computation(opcode.value, body, element_type, element_type)


def argmax_computation(values: ElementType, indices: ElementType) -> HloComputation:
    """The reducer on (value, index) that keeps the larger value, and of equal ones the smaller index."""

    def body(x: HloInstruction, i: HloInstruction, y: HloInstruction, j: HloInstruction) -> HloInstruction:
        first = op(O.AND, compare(D.EQ, x, y), compare(D.LT, i, j))
        keep = op(O.OR, compare(D.GT, x, y), first)
        return op(O.TUPLE, op(O.SELECT, keep, x, y), op(O.SELECT, keep, i, j))

    return computation("argmax", body, values, indices, values, indices)


def log_add_exp_computation(element_type: ElementType) -> HloComputation:
    """The reducer x, y -> max(x, y) + log1p(exp(-|x - y|))."""

    def body(x: HloInstruction, y: HloInstruction) -> HloInstruction:
        difference = op(O.NEGATE, op(O.ABS, op(O.SUBTRACT, x, y)))
        return op(O.ADD, op(O.MAXIMUM, x, y), op(O.LOG1P, op(O.EXP, difference)))

    return computation("logaddexp", body, element_type, element_type)


def last_of_two(t: ElementType) -> HloComputation:
    """y unless it is zero, else x: associative, but not commutative."""
    zero = make_constant(t.dtype.type(0))
    return computation("last_of_two", lambda x, y: op(O.SELECT, compare(D.EQ, y, zero), x, y), t, t)



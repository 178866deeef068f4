"""Helpers of the shape rules: sets of element types, and one way to report an error.

A rule's labels are `<opcode>_c<N>`; its docstring states the requirement of each one. Only helpers that at least two
families need belong here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ..element_type import ElementType
from ..errors import ShapeError
from ..instruction import HloComputation
from ..layout import row_major
from ..opcode import Opcode
from ..shape import Shape

PRED = frozenset({ElementType.PRED})
INTEGERS = frozenset(t for t in ElementType if t.is_integral)
SIGNED_INTEGERS = frozenset(t for t in INTEGERS if t.is_signed)
FLOATS = frozenset(t for t in ElementType if t.is_floating)
COMPLEX = frozenset(t for t in ElementType if t.is_complex)
NUMBERS = INTEGERS | FLOATS | COMPLEX
ANY = NUMBERS | PRED
_KINDS = {"booleans": PRED, "integers": INTEGERS, "floating-point numbers": FLOATS, "complex numbers": COMPLEX}


def fail(opcode: Opcode, operands: Sequence[Shape], why: str, rule: int) -> NoReturn:
    """Raise the ShapeError of `opcode` on `operands` for its rule `<opcode>_c<rule>`."""
    types = ", ".join(map(str, operands))
    raise ShapeError(f"{opcode.value} of ({types}): {why}", f"{opcode.value}_c{rule}")


def names(types: frozenset[ElementType]) -> str:
    """The element types for messages: the kinds of which all are there, and other types in their declared order."""
    kinds = [name for name, kind in _KINDS.items() if kind <= types]
    rest = types.difference(*[_KINDS[name] for name in kinds])
    listed = kinds + [t.value for t in ElementType if t in rest]
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if listed[1:] else listed)


def in_default_layout(shape: Shape) -> Shape:
    """The array `shape` in row-major order; the same object if it already is row-major."""
    layout = row_major(len(shape.dimensions))
    return shape if shape.layout is layout else Shape(shape.element_type, shape.dimensions, layout)


def array_of(element_type: ElementType, dimensions: tuple[int, ...]) -> Shape:
    """A row-major array shape with dimensions that are known to be valid."""
    return Shape(element_type, dimensions, row_major(len(dimensions)))


def require_arrays(opcode: Opcode, operands: Sequence[Shape], rule: int) -> None:
    """Fail if an operand is a tuple."""
    for operand in operands:
        if operand.tuple_shapes is not None:
            fail(opcode, operands, "operands must be arrays, not tuples", rule)


def require_declared(opcode: Opcode, operands: Sequence[Shape], declared: Shape | None, rule: int) -> Shape:
    """The declared shape of an op with a result that cannot be inferred."""
    if declared is None:
        fail(opcode, operands, "the result shape is a choice and must be given", rule)
    return declared


def require_distinct_dimensions(
    opcode: Opcode, operands: Sequence[Shape], dimensions: Sequence[int], rank: int, what: str, rule: int
) -> None:
    """Fail unless each of `dimensions` is in [0, rank) and none occurs twice."""
    if any(not 0 <= d < rank for d in dimensions):
        why = f"Invalid {what} set in {opcode.value} op; valid range is [0, {rank}), got {list(dimensions)}"
        fail(opcode, operands, why, rule)
    if len(set(dimensions)) != len(dimensions):
        fail(opcode, operands, f"{what} in {opcode.value} op must not repeat, got {list(dimensions)}", rule)


def require_signature(
    opcode: Opcode,
    operands: Sequence[Shape],
    computation: HloComputation,
    parameters: Sequence[Shape],
    rule: int,
) -> None:
    """Fail unless `computation` takes parameters of exactly these types (layouts aside)."""
    found = [p.shape for p in computation.parameters]
    if len(found) != len(parameters) or not all(a.compatible(b) for a, b in zip(found, parameters, strict=True)):
        fail(
            opcode,
            operands,
            f"computation {computation.name} takes ({', '.join(map(str, found))}), "
            f"not ({', '.join(map(str, parameters))})",
            rule,
        )

"""A case of an op: its module and inputs, and how results are compared.

The cases are made in `op_cases_<family>.py` with the functions at the end of this file; `op_table.py` has them all.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..hlo import (
    ElementType,
    HloInstruction,
    HloModule,
    Opcode,
    Shape,
    make_computation,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from ..hlo.ir import NO_ATTRIBUTES, Attributes
from ..hlo.support.records import dataclass
from .op_values import NDArray, Values, any_value, errors_in_ulps

E = ElementType
O = Opcode  # noqa: E741
SIGNED = (E.S8, E.S16, E.S32, E.S64)
UNSIGNED = (E.U8, E.U16, E.U32, E.U64)
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = (E.F16, E.BF16, E.F32, E.F64)
COMPLEX = (E.C64, E.C128)
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
ALL = (E.PRED, *NUMBERS)

SUBNORMAL = "subnormal"


@dataclass(frozen=True)
class Array:
    """An operand: its type and the kind of values to put in."""

    element_type: ElementType
    dimensions: tuple[int, ...] = ()
    values: Values = any_value

    @property
    def shape(self) -> Shape:
        return Shape.array(self.element_type, self.dimensions)


@dataclass(frozen=True)
class Token:
    """An operand that is a token: the module makes it with after-all."""

    shape = Shape.token()


Operand: TypeAlias = "Array | Token | tuple[Operand, ...]"
"""An array, a token, or a tuple of operands: the module has a parameter for each array and makes the tuple itself."""


@dataclass(frozen=True)
class OpCase:
    """One op on operands of given types."""

    id: str
    opcode: Opcode
    operands: tuple[Operand, ...]
    attributes: Attributes
    result: Shape
    ulps: float = 0
    """The largest difference between two correct implementations; 0: bit by bit, NaN aside."""
    signed_zeros: bool = True
    """Whether 0.0 and -0.0 differ in the result."""

    @property
    def is_subnormal(self) -> bool:
        """Whether the case is about subnormal numbers, which XLA's CPU runtime flushes to zero."""
        return self.id.endswith(SUBNORMAL)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays in the operands, depth first: the module's parameters."""
        return tuple(_leaves(self.operands))


def _leaves(operand: Operand) -> Iterator[Array]:
    if isinstance(operand, Array):
        yield operand
    elif not isinstance(operand, Token):
        for element in operand:
            yield from _leaves(element)


def build_module(case: OpCase) -> HloModule:
    """A module with the op on the entry's parameters."""
    parameters = [make_parameter(i, array.shape, f"p{i}") for i, array in enumerate(case.arrays)]
    source = iter(parameters)

    def instruction(operand: Operand) -> HloInstruction:
        if isinstance(operand, Token):
            return make_instruction(O.AFTER_ALL)
        return next(source) if isinstance(operand, Array) else make_tuple([instruction(o) for o in operand])

    operands = [instruction(o) for o in case.operands]
    if case.opcode is O.PARAMETER:
        root = operands[0]
    else:
        root = make_instruction(case.opcode, operands, case.attributes, case.result)
    return make_module("case", make_computation("main", root, parameters))


def make_inputs(case: OpCase, seed: int = 0) -> list[NDArray]:
    """An array for each parameter of `build_module(case)`: the same for the same case and seed."""
    rng = np.random.default_rng([seed, zlib.crc32(case.id.encode())])
    values = (array.values(array.element_type, array.dimensions, i, rng) for i, array in enumerate(case.arrays))
    return [np.asarray(v) for v in values]


def check_results(case: OpCase, actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """AssertionError unless the results have the case's types and differ by no more than it allows."""
    leaves = list(case.result.leaves())
    assert len(actual) == len(expected) == len(leaves), f"{case.id}: {len(actual)} results, not {len(leaves)}"
    for position, (got, wanted, leaf) in enumerate(zip(actual, expected, leaves, strict=True)):
        got, wanted = np.asarray(got), np.asarray(wanted)
        where = f"{case.id}, result {position}"
        assert got.dtype == wanted.dtype == leaf.element.dtype, f"{where}: {got.dtype}, not {leaf.element.dtype}"
        assert got.shape == wanted.shape == leaf.dimensions, f"{where}: {got.shape}, not {leaf.dimensions}"
        errors = errors_in_ulps(got, wanted, signed_zeros=case.signed_zeros)
        if errors.size and not errors.max() <= case.ulps:
            worst = np.unravel_index(np.argmax(errors), errors.shape)
            raise AssertionError(
                f"{where}: element {list(map(int, worst))} is {got[worst]!r}, not {wanted[worst]!r}: "
                f"{errors[worst]:.3g} ulps, {case.ulps:g} allowed ({np.sum(errors > case.ulps)} elements differ)"
            )


UNARY_SIZE, BINARY_SIZE = (5, 7, 3), (23, 25)
OTHER_SIZES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (3, 0, 2), (1, 37))


def describe(operand: Operand) -> str:
    if isinstance(operand, Token):
        return "token"
    if isinstance(operand, Array):
        return "x".join([str(operand.element_type.value), *map(str, operand.dimensions)])
    return "(" + ",".join(map(describe, operand)) + ")"


def make_case(
    opcode: Opcode,
    operands: Sequence[Operand],
    result: Shape,
    attributes: Attributes = NO_ATTRIBUTES,
    *,
    ulps: float = 0,
    signed_zeros: bool = True,
    note: str = "",
) -> OpCase:
    name = "-".join(filter(None, [opcode.value, *map(describe, operands[:2]), note]))
    return OpCase(name, opcode, tuple(operands), attributes, result, ulps, signed_zeros)


Dimensions: TypeAlias = tuple[int, ...]


def sizes_of(element_type: ElementType, types: Sequence[ElementType], main: Dimensions) -> Iterator[Dimensions]:
    """The main size, and for one common type all others."""
    yield main
    common = next((t for t in (E.F32, E.S32, E.PRED, E.C64) if t in types), types[0])
    if element_type is common:
        yield from OTHER_SIZES


def shape_of(element_type: ElementType, dimensions: Sequence[int] = ()) -> Shape:
    return Shape.array(element_type, tuple(dimensions))


def without(dims: Sequence[int], removed: Sequence[int]) -> list[int]:
    """The sizes of the dimensions that are not removed."""
    return [n for d, n in enumerate(dims) if d not in removed]

"""Computations on scalars (reducers, combiners, comparators), applied to all elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops import Trait, has_trait
from .table import NDArray, interpret
from .ufuncs import UFUNCS, Extremum, Ufunc


def as_ufunc(computation: HloComputation) -> Ufunc | None:
    """The ufunc that equals `computation`, if that is one commutative op on its two parameters. None for the extrema
    of complex numbers, which are neither commutative nor associative if a real part is NaN."""
    root = computation.root
    ufunc = UFUNCS.get(root.opcode)
    if ufunc is None or is_complex_extremum(root):
        return None
    return ufunc if root.operands in (computation.parameters, computation.parameters[::-1]) else None


def is_complex_extremum(instruction: HloInstruction) -> bool:
    """True for the maximum or minimum of complex numbers."""
    return isinstance(UFUNCS.get(instruction.opcode), Extremum) and instruction.shape.element.is_complex


def reduced_in(element_type: ElementType) -> np.dtype[Any]:
    """The type in which a ufunc combines many elements: the next wider one for f16, bf16 and smaller types.

    Floats are rounded once, at the end. The upper bits of small integers do not matter to the lower ones.
    """
    if element_type.is_floating:
        return np.dtype(np.float32) if element_type.bit_width <= 16 else element_type.dtype
    if element_type.is_small:
        return np.dtype(np.int8 if element_type.is_signed else np.uint8)
    return element_type.dtype


class Applied:
    """`computation` as a function of arrays of equal dimensions, one for each parameter; returns a tuple.

    An element-wise op's rule treats each element of an array like a scalar, so a computation of such ops is interpreted
    once, on the arrays; any other is interpreted for each element.
    """

    def __init__(self, computation: HloComputation) -> None:
        self._computation = computation
        self._takes_arrays = all(map(_is_elementwise, computation.instructions))
        root = computation.root.shape
        self._dtypes = [leaf.element.dtype for leaf in root.leaves()]

    def __call__(self, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        dimensions = operands[0].shape
        if self._takes_arrays:
            return tuple(np.broadcast_to(r, dimensions) for r in self._apply(operands))
        outputs = tuple(np.empty(dimensions, dtype) for dtype in self._dtypes)
        for index in np.ndindex(dimensions):
            for output, result in zip(outputs, self._apply([a[(*index, ...)] for a in operands])):
                output[index] = result
        return outputs

    def _apply(self, operands: Sequence[NDArray]) -> tuple[Any, ...]:
        result = interpret(self._computation, operands)
        return result if isinstance(result, tuple) else (result,)


_STRUCTURE = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT})


def _is_elementwise(instruction: HloInstruction) -> bool:
    opcode = instruction.opcode
    if opcode is Opcode.BITCAST_CONVERT:
        return instruction.shape.element.bit_width == instruction.operands[0].shape.element.bit_width
    return opcode in _STRUCTURE or (has_trait(opcode, Trait.ELEMENTWISE) and not has_trait(opcode, Trait.APPLIES))

"""What reduce means: the init value and all elements along the reduced dimensions, combined by any computation.

XLA leaves the order open. Here neighbours are combined pairwise, level by level, which is exact for the associative
reducers that reduce is made for and adds floats up with small error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..attributes import ReduceAttributes
from ..element_type import ElementType
from ..ir import HloComputation
from ..opcode import Opcode
from ..shape import Shape
from .table import EVALUATE, NDArray, Value, interpret

_UFUNCS: dict[Opcode, np.ufunc] = {
    Opcode.ADD: np.add,
    Opcode.MULTIPLY: np.multiply,
    Opcode.MAXIMUM: np.maximum,
    Opcode.MINIMUM: np.minimum,
}
_BITWISE: dict[Opcode, np.ufunc] = {
    Opcode.AND: np.bitwise_and,
    Opcode.OR: np.bitwise_or,
    Opcode.XOR: np.bitwise_xor,
}
_NARROW = (ElementType.F16, ElementType.BF16)


@EVALUATE.register(Opcode.REDUCE)
def _reduce(shape: Shape, attributes: ReduceAttributes, *operands: NDArray) -> Value:
    count = len(operands) // 2
    arrays, inits = operands[:count], operands[count:]
    ufunc = _as_ufunc(attributes.to_apply) if count == 1 else None
    if ufunc is not None:
        return _reduce_by_ufunc(ufunc, shape, attributes.dimensions, arrays[0], inits[0])
    results = _reduce_by_computation(attributes.to_apply, attributes.dimensions, arrays, inits)
    return results[0] if count == 1 else results


def _as_ufunc(reducer: HloComputation) -> np.ufunc | None:
    """The ufunc that `reducer` is, if it is one binary op on its two parameters."""
    root = reducer.root
    ufunc = _UFUNCS.get(root.opcode) or _BITWISE.get(root.opcode)
    return ufunc if ufunc is not None and set(root.operands) == set(reducer.parameters) else None


def _reduce_by_ufunc(
    ufunc: np.ufunc, shape: Shape, dimensions: tuple[int, ...], array: NDArray, init: NDArray
) -> NDArray:
    """f16 and bf16 are combined in f32 and rounded once; XLA also rounds some partial results."""
    dtype = array.dtype
    if shape.element in _NARROW or shape.element.is_small:
        # As int8 or uint8, of which the upper bits do not matter to the lower ones; as f32, rounded at the end.
        wide = np.dtype(np.float32 if shape.element.is_floating else np.int8 if shape.element.is_signed else np.uint8)
        array, init = array.astype(wide), init.astype(wide)
    if array.size == 0:
        return np.full(shape.dimensions, init, dtype)
    if dimensions:
        array = ufunc.reduce(array, axis=dimensions, dtype=array.dtype)
    return np.asarray(ufunc(init, array)).astype(dtype, copy=False)


def _reduce_by_computation(
    reducer: HloComputation, dimensions: tuple[int, ...], arrays: Sequence[NDArray], inits: Sequence[NDArray]
) -> tuple[NDArray, ...]:
    kept = [d for d in range(arrays[0].ndim) if d not in dimensions]
    result_sizes = [arrays[0].shape[d] for d in kept]
    steps = math.prod(arrays[0].shape[d] for d in dimensions)
    combine = _Combiner(reducer)
    # The reduced dimensions become one, in front: an array of `steps` layers.
    layers = tuple(a.transpose((*dimensions, *kept)).reshape(steps, *result_sizes) for a in arrays)
    while steps > 1:
        pairs = steps // 2 * 2
        combined = combine([a[0:pairs:2] for a in layers], [a[1:pairs:2] for a in layers])
        layers = tuple(np.concatenate([c, a[pairs:]]) for c, a in zip(combined, layers))
        steps = len(layers[0])
    start = [np.full(result_sizes, init, a.dtype) for init, a in zip(inits, arrays)]
    return combine(start, [a[0] for a in layers]) if steps else tuple(start)


class _Combiner:
    """Applies a reducer, a computation on scalars, to all elements of arrays."""

    def __init__(self, reducer: HloComputation) -> None:
        self._reducer = reducer
        self._takes_arrays = _is_elementwise(reducer)

    def __call__(self, accumulators: Sequence[NDArray], elements: Sequence[NDArray]) -> tuple[NDArray, ...]:
        if self._takes_arrays:
            results = self._apply([*accumulators, *elements])
            return tuple(np.broadcast_to(r, a.shape) for r, a in zip(results, accumulators))
        outputs = tuple(np.empty_like(a) for a in accumulators)
        for index in np.ndindex(outputs[0].shape):
            results = self._apply([a[(*index, ...)] for a in (*accumulators, *elements)])
            for output, result in zip(outputs, results):
                output[index] = result
        return outputs

    def _apply(self, operands: list[NDArray]) -> tuple[Any, ...]:
        result = interpret(self._reducer, operands)
        return result if isinstance(result, tuple) else (result,)


_SCALAR_OPS_ON_ARRAYS = frozenset(
    {Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.COMPARE, Opcode.SELECT}
    | {Opcode.CLAMP, Opcode.CONVERT, Opcode.COPY}
    | set(_UFUNCS)
    | set(_BITWISE)
    | {Opcode.SUBTRACT, Opcode.DIVIDE, Opcode.NEGATE, Opcode.NOT, Opcode.ABS, Opcode.EXP, Opcode.LOG, Opcode.LOG1P}
    | {Opcode.IS_FINITE, Opcode.SQRT, Opcode.POWER}
)
"""Ops whose rule, given arrays where the computation says scalar, does the same to each element."""


def _is_elementwise(computation: HloComputation) -> bool:
    return all(i.opcode in _SCALAR_OPS_ON_ARRAYS for i in computation.instructions)

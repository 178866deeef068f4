"""The semantics of reduce: the init value and all elements along the reduced dimensions, combined by any computation.

XLA leaves the order open. Here sums and products of floats are combined in blocks, and the results of blocks in blocks
again, so that rounding errors grow with the logarithm of the length. (NumPy does so along contiguous rows alone.) Other
reducers that are one ufunc reduce in the ufunc's order; any other combines neighbours pairwise, level by level, which
is exact for associative reducers. The extrema of complex numbers are not associative if a real part is NaN: they are
combined in row-major order, as in XLA's code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..ir import HloComputation
from ..opcode import Opcode
from ..ops.reduce import ReduceAttributes
from ..shape import Shape
from .scalar_computations import Applied, as_ufunc, is_complex_extremum, reduced_in
from .table import EVALUATE, NDArray, Value
from .ufuncs import Ufunc


@EVALUATE.register(Opcode.REDUCE)
def _reduce(shape: Shape, attributes: ReduceAttributes, *operands: NDArray) -> Value:
    count = len(operands) // 2
    arrays, inits = operands[:count], operands[count:]
    ufunc = as_ufunc(attributes.to_apply) if count == 1 else None
    if ufunc is not None:
        return _reduce_by_ufunc(ufunc, shape, attributes.dimensions, arrays[0], inits[0])
    results = _reduce_by_computation(attributes.to_apply, attributes.dimensions, arrays, inits)
    return results[0] if count == 1 else results


def _reduce_by_ufunc(ufunc: Ufunc, shape: Shape, dimensions: tuple[int, ...], array: NDArray, init: NDArray) -> NDArray:
    """f16 and bf16 are combined in f32 and rounded once; XLA also rounds some partial results."""
    wide = reduced_in(shape.element)
    array, init = array.astype(wide, copy=False), init.astype(wide, copy=False)
    if ufunc in _NEUTRAL and shape.element.is_inexact and _is_long(array, dimensions):
        assert isinstance(ufunc, np.ufunc)
        result = ufunc(init, _reduced_in_blocks(ufunc, array, dimensions))
    else:
        result = ufunc.reduce(array, axis=dimensions, dtype=wide, initial=init[()])
    return np.asarray(result).astype(shape.element.dtype, copy=False)


_NEUTRAL: dict[Ufunc, float] = {np.add: -0.0, np.multiply: 1.0}
_BLOCK = 128
"""How many numbers are combined one after the other, as in NumPy's own sums of rows."""
_LONG = 4 * _BLOCK
"""From here on a second level is worth its calls."""


def _is_long(array: NDArray, dimensions: tuple[int, ...]) -> bool:
    return math.prod([array.shape[d] for d in dimensions]) > _LONG and array.size > 0


def _reduced_in_blocks(ufunc: np.ufunc, array: NDArray, dimensions: tuple[int, ...]) -> NDArray:
    """The sum or product over `dimensions`, one after the other, from the last one on. NumPy has blocks of its own in
    sums of contiguous rows."""
    neutral = array.dtype.type(_NEUTRAL[ufunc])
    for d in sorted(dimensions, reverse=True):
        while (size := array.shape[d]) > _BLOCK:
            if ufunc is np.add and array.strides[d] == array.itemsize:
                break
            before, after = array.shape[:d], array.shape[d + 1 :]
            whole = size // _BLOCK * _BLOCK
            first = array[(slice(None),) * d + (slice(whole),)].reshape(*before, -1, _BLOCK, *after)
            parts = [ufunc.reduce(first, axis=d + 1, initial=neutral)]
            if whole < size:
                rest = array[(slice(None),) * d + (slice(whole, None),)]
                parts.append(ufunc.reduce(rest, axis=d, keepdims=True, initial=neutral))
            array = np.concatenate(parts, axis=d) if len(parts) > 1 else parts[0]
        array = np.asarray(ufunc.reduce(array, axis=d, initial=neutral))
    return array


def _reduce_by_computation(
    reducer: HloComputation, dimensions: tuple[int, ...], arrays: Sequence[NDArray], inits: Sequence[NDArray]
) -> tuple[NDArray, ...]:
    kept = [d for d in range(arrays[0].ndim) if d not in dimensions]
    result_sizes = [arrays[0].shape[d] for d in kept]
    steps = math.prod(arrays[0].shape[d] for d in dimensions)
    apply = Applied(reducer)
    # The reduced dimensions become one first dimension: an array of `steps` layers.
    layers = tuple(a.transpose((*dimensions, *kept)).reshape(steps, *result_sizes) for a in arrays)
    start = tuple([np.full(result_sizes, init, a.dtype) for init, a in zip(inits, arrays)])
    if any(map(is_complex_extremum, reducer.instructions)):
        for k in range(steps):
            start = apply([*start, *(a[k] for a in layers)])
        return start
    while steps > 1:
        pairs = steps // 2 * 2
        combined = apply([a[k:pairs:2] for k in (0, 1) for a in layers])
        layers = tuple(np.concatenate([c, a[pairs:]]) for c, a in zip(combined, layers))
        steps = len(layers[0])
    return apply([*start, *(a[0] for a in layers)]) if steps else start

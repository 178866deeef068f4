"""What reduce means: the init value and all elements along the reduced dimensions, combined by any computation.

XLA leaves the order open. Here a reducer that is one ufunc reduces in the ufunc's order; any other combines neighbours
pairwise, level by level, which is exact for associative reducers. The extrema of complex numbers are not associative
if a real part is NaN: they are combined in row-major order, as in XLA's code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..ir import HloComputation
from ..opcode import Opcode
from ..ops.reduce import ReduceAttributes
from ..shape import Shape
from .applied import Applied, as_ufunc, is_complex_extremum, reduced_in
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
    result = ufunc.reduce(array, axis=dimensions, dtype=wide, initial=init[()])
    return np.asarray(result).astype(shape.element.dtype, copy=False)


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

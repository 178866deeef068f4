"""Derivatives and batches of reduce. Sums are linear; extrema share a cotangent among ties; all else is a tree.

The tree for a general reducer (products, argmax-like pairs, user-written ones) applies the reducer to halves of the
array, elementwise, log2(n) times. It is an ordinary program of elementwise ops, so their rules do the rest. The results
themselves still come from the reduce: where only they are needed (an argmax), the tree is dead code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...hlo.errors import UnsupportedError
from ...hlo.opcode import Opcode
from ...hlo.ops.reduce import ReduceAttributes
from ...hlo.shape import Shape
from ...tracer.arrays.array import Array
from ...tracer.core import Value, bind, bind_multi
from ...tracer.ops import (
    add,
    broadcast,
    compare,
    convert,
    div,
    is_inexact,
    mul,
    reduce_sum,
    reduce_with,
    reshape,
    scalar,
    sum_all,
)
from ..batches import Axis, with_batch
from ..jvp import jvp_flat
from ..tangents import Linear, Operand, Tangent, Zero
from .computations import apply_to_arrays, reduce_in_halves, reducer_opcode
from .declared import aligned
from .tables import BATCH, JVP, TRANSPOSE

_O = Opcode


@JVP.register(_O.REDUCE)
def _reduce_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ReduceAttributes, shape: Shape
) -> Any:
    """A sum: the sum of the tangents. An extreme: the mean of the tangents where it is. Any other reducer: the
    derivative of a tree of its applications."""
    if len(primals) != 2:
        return bind_multi(_O.REDUCE, primals, attributes), _tree_jvp(primals, tangents, attributes)[1]
    (x, init), (t, t_init) = primals, tangents
    opcode = reducer_opcode(attributes.to_apply)
    dims = attributes.dimensions
    if opcode is _O.ADD:
        return bind(_O.REDUCE, primals, attributes), _sum_tangent(t, t_init, dims, shape)
    if opcode in (_O.MAXIMUM, _O.MINIMUM):
        if isinstance(t_init, Zero) and never_wins(init, opcode):
            assert not isinstance(t, Zero)
            return _extremum_jvp(opcode, x, t, init, dims)
        worst = scalar(-np.inf if opcode is _O.MAXIMUM else np.inf, x.aval.dtype)

        def apart(x: Value, init: Value) -> list[Value]:
            reduced = reduce_with(opcode, x, worst, dims)
            return [bind(opcode, (reduced, broadcast(init, shape.dimensions, ())))]

        (ans,), (tangent,) = jvp_flat(lambda values: apart(*values), primals, tangents)
        return ans, tangent
    _, (tangent,) = _tree_jvp(primals, tangents, attributes)
    return bind(_O.REDUCE, primals, attributes), tangent


def _sum_tangent(t: Tangent, t_init: Tangent, dims: tuple[int, ...], shape: Shape) -> Value:
    if isinstance(t, Zero):
        assert not isinstance(t_init, Zero)
        return broadcast(t_init, shape.dimensions, ())
    if isinstance(t_init, Zero):
        return reduce_sum(t, dims)
    return reduce_with(_O.ADD, t, t_init, dims) if dims else add(t, broadcast(t_init, shape.dimensions, ()))


@TRANSPOSE.register(_O.REDUCE)
def _reduce_transpose(ct: Any, operands: Sequence[Operand], attributes: ReduceAttributes, shape: Shape) -> Any:
    """Of a sum alone: the cotangent, broadcast over the dimensions that were summed."""
    if len(operands) != 2 or reducer_opcode(attributes.to_apply) is not _O.ADD:
        raise UnsupportedError("only a reduce by add is linear and can be transposed")
    x, init = operands
    kept = [d for d in range(len(x.aval.shape)) if d not in attributes.dimensions]
    return [
        broadcast(ct, x.aval.shape, kept) if isinstance(x, Linear) else None,
        sum_all(ct) if isinstance(init, Linear) else None,
    ]


def never_wins(init: Value, opcode: Opcode) -> bool:
    """True when the init value is known to be the identity of max or min."""
    if not isinstance(init, Array):
        return False
    worst = -np.inf if opcode is _O.MAXIMUM else np.inf
    return bool(np.asarray(init).astype(np.float64) == worst)


def _extremum_jvp(opcode: Opcode, x: Value, t: Value, init: Value, dims: tuple[int, ...]) -> tuple[Value, Value]:
    """The mean of the tangents where the extremum is."""
    ans = reduce_with(opcode, x, init, dims)
    kept = [d for d in range(len(x.aval.shape)) if d not in dims]
    hits = convert(compare(x, "EQ", broadcast(ans, x.aval.shape, kept)), x.aval.dtype)
    count = reduce_sum(hits, dims)
    return ans, div(reduce_sum(mul(t, hits), dims), count)


# --- general reducers


def _tree_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ReduceAttributes
) -> tuple[list[Value], list[Tangent]]:
    return jvp_flat(lambda values: _tree_reduce(values, attributes), primals, tangents)


def _tree_reduce(values: Sequence[Value], attributes: ReduceAttributes) -> list[Value]:
    """The reduction of `values` (N arrays, N init values) as elementwise applications of the reducer."""
    count = len(values) // 2
    arrays, inits = list(values[:count]), values[count:]
    reducer = attributes.to_apply
    for d in attributes.dimensions:
        arrays = reduce_in_halves(arrays, d, lambda first, second: apply_to_arrays(reducer, [*first, *second]))
    sizes = arrays[0].aval.shape
    kept = tuple(size for d, size in enumerate(sizes) if d not in attributes.dimensions)
    starts = [broadcast(init, kept, ()) for init in inits]
    if any(sizes[d] == 0 for d in attributes.dimensions):
        return starts
    arrays = [reshape(a, kept) for a in arrays]
    if reducer_opcode(reducer) is _O.MULTIPLY and isinstance(inits[0], Array) and np.asarray(inits[0]) == 1:
        return arrays
    return apply_to_arrays(reducer, [*starts, *arrays])


# --- batching


def reduced_batch(
    opcode: Opcode, axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Any, shape: Shape
) -> tuple[Any, Any]:
    """Reductions, of windows too. An init value for each element is combined with the result at the end, if the reducer
    is known to have an identity from which to start."""
    count = len(operands) // 2
    start = None
    if count == 1 and batched[1]:
        start = _identity(reducer_opcode(attributes.to_apply), operands[0].aval.dtype)
    if start is None:
        return aligned(opcode, axis, operands, batched, attributes, shape)
    x, init = operands
    result, is_batched = x, batched[0]
    if is_batched:
        result, _ = aligned(opcode, axis, (x, start), (True, False), attributes, shape)
    else:
        result = bind(opcode, (x, start), attributes, shape=shape)
    inits = broadcast(init, (axis.size, *shape.dimensions), (0,))
    return bind(attributes.to_apply.root.opcode, (inits, with_batch(axis, result, is_batched))), True


def _identity(opcode: Opcode | None, dtype: np.dtype[Any]) -> Value | None:
    """The identity element of `opcode`; None if that is not known."""
    kind = dtype.kind
    if opcode is _O.ADD:
        return scalar(False if kind == "b" else -0.0 if is_inexact(dtype) else 0, dtype)
    if opcode is _O.MULTIPLY:
        return scalar(1, dtype)
    if opcode in (_O.OR, _O.XOR):
        return scalar(0, dtype)
    if opcode in (_O.MAXIMUM, _O.MINIMUM) and kind == "f":
        return scalar(-np.inf if opcode is _O.MAXIMUM else np.inf, dtype)
    return None


for _opcode in (_O.REDUCE, _O.REDUCE_WINDOW):
    BATCH[_opcode] = partial(reduced_batch, _opcode)

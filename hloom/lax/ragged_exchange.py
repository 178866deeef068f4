"""An exchange of slices of different lengths along a named axis. The name and arguments follow jax.lax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer import ops
from ..tracer.arrays.array import as_value
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .movement import broadcast_in_dim, broadcasted_iota
from .parallel import AxisName, all_gather, axis_index, axis_size, groups_of_places


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: AxisName,
    axis_index_groups: Any = None,
) -> Value:
    """Slices of the first dimension, each sent to an element along a named axis: `output` with the received slices in
    it.

    To element k goes ``operand[input_offsets[k]:][:send_sizes[k]]``, and comes to ``output_offsets[k]`` there. Sizes
    and offsets are integer vectors with an element for each element along the axis; `recv_sizes` say how many rows
    arrive from each, and follow from the senders' sizes. It is computed from the arrays of all elements.
    axis_index_groups: places along the axis in lists of one size. Rows are exchanged within each list, and "element k"
    is the one at its k-th place.

    Raises:
      OperandError: types or sizes do not fit.

        >>> rows = jnp.array([[1.0, 2.0, 2.0], [3.0, 4.0, 0.0]])
        >>> def exchange(x, starts, sizes, targets, received):
        ...     return lax.ragged_all_to_all(x, jnp.zeros(4), starts, sizes, targets, received, axis_name="i")
        >>> sizes = jnp.array([[1, 2], [1, 1]])
        >>> hloom.vmap(exchange, axis_name="i")(
        ...     rows, jnp.array([[0, 1], [0, 1]]), sizes, jnp.array([[0, 0], [1, 2]]), sizes.T)
        Array([[1., 3., 0., 0.],
               [2., 2., 4., 0.]], dtype=float32)
    """
    groups = groups_of_places("ragged_all_to_all", axis_name, axis_index_groups)
    x, found = as_value(operand), as_value(output)
    count = len(groups[0]) if groups else axis_size(axis_name)
    counts = [as_value(v) for v in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    _check(x, found, counts, count)
    me = axis_index(axis_name)
    if groups:
        places = np.zeros(axis_size(axis_name), np.int32)
        for group in groups:
            places[list(group)] = range(count)
        me = as_value(places)[me]
    rows, starts, sizes, targets = (
        all_gather(v, axis_name, axis_index_groups=axis_index_groups) for v in (x, *counts[:3])
    )
    place = broadcasted_iota(counts[0].aval.dtype, found.aval.shape[:1], 0)
    for sender in range(count):
        start, size, target = (v[sender, me] for v in (starts, sizes, targets))
        arrives = (place >= target) & (place < target + size)
        from_there = rows[sender].at[place - target + start].get(mode="clip")
        spread = broadcast_in_dim(arrives, found.aval.shape, (0,))
        found = ops.select(spread, from_there, found)
    return found


def _check(x: Value, output: Value, counts: list[Value], size: int) -> None:
    def fail(why: str) -> None:
        types = ", ".join(v.aval.str_short() for v in (x, output, *counts))
        raise OperandError(f"ragged_all_to_all of {types}: {why}", "ragged_all_to_all")

    names = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")
    for name, v in zip(names, counts, strict=True):
        if v.aval.dtype.kind not in "iu":
            fail(f"{name} must be integer type")
        if v.aval.ndim != 1 or not v.aval.shape[0]:
            fail(f"{name} must be rank 1 with positive dimension size")
        if v.aval.shape[0] != size:
            fail(f"{name} must have an element for each of the {size} elements along the axis")
        if v.aval.dtype is not counts[0].aval.dtype:
            fail("offsets and sizes must have one dtype")
    if x.aval.dtype is not output.aval.dtype or not x.aval.ndim or x.aval.shape[1:] != output.aval.shape[1:]:
        fail("operand and output must have one dtype, and the same dimensions after the first")

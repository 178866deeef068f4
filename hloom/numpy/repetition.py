"""`repeat`, and its implementation: elements taken along an axis by sorted indices.

The derivative of taking is adding: each is a primitive with the other as its transpose, so that both are differentiable
any number of times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..autodiff.placed_results import computed_in
from ..autodiff.tangents import Linear
from ..extend.primitive import Primitive
from ..hlo.element_type import element_type_of
from ..hlo.opcode import Opcode
from ..hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ..hlo.sizes import as_size, is_symbolic
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value, bind
from ..tracer.errors import OperandError
from ..tracer.ops import scalar_reducer
from .array_manipulation import along, ravel
from .concrete_values import known_array
from .promotion import broadcast_to_shape, check_arraylike

_FEW = 16
"""Up to so many elements with different counts are cut out one by one; more are taken by a table of indices."""


@compound(static=("repeats", "axis", "total_repeat_length", "out_sharding"), frequent=True)
def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Value:
    """Each element repeated, `repeats` times (one number, or one for each element), along an axis or flattened.

    The counts must be known while tracing, unless `total_repeat_length` gives the size of the result: it is cut there,
    or filled up with the last element.

    Raises:
      ConcretizationTypeError: traced counts without `total_repeat_length`.
      OperandError: counts that are no integers, or not one for each element.

    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    >>> jnp.repeat(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 1]), axis=0)
    Array([[1, 2],
           [1, 2],
           [3, 4]], dtype=int32)
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]), total_repeat_length=5)
    Array([1, 1, 2, 2, 2], dtype=int32)
    """
    check_arraylike("repeat", a, repeats)
    return computed_in(
        out_sharding, "repeat", lambda x: _repeated(*along(x, axis), repeats, total_repeat_length), as_value(a)
    )


def _repeated(x: Value, axis: int, repeats: Any, total_repeat_length: int | None) -> Value:
    """The elements along an axis, repeated."""
    if is_symbolic(repeats):
        if total_repeat_length is not None:
            raise ValueError(
                "jnp.repeat with a non-constant `repeats` is supported only without `total_repeat_length`: repeats is "
                f"the symbolic size {repeats}"
            )
        return _all_alike(x, repeats, axis)
    if total_repeat_length is not None:
        return _to_length(x, _counts_of(as_value(repeats), x, axis), axis, as_size(total_repeat_length))
    counts = known_array(
        "repeat: the size of the result depends on `repeats`. It", repeats,
        "Give total_repeat_length, the size of the result, or make repeats static.",
    )  # fmt: skip
    if counts.dtype.kind not in "iu":
        raise OperandError(f"repeat: repeats must be integers, not {counts.dtype.name}", "repeat")
    if counts.size and counts.min() < 0:
        raise OperandError("repeat: repeats must not be negative", "repeat")
    if counts.size == 1:
        return _all_alike(x, int(counts.reshape(())), axis)
    if counts.shape != (x.aval.shape[axis],):
        raise _not_one_each(counts.shape, x, axis)
    if len(counts) > _FEW:
        indices = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return _taken.bind(x, indices, axis=axis) if len(indices) else lax.slice_in_dim(x, 0, 0, 1, axis)
    pieces = [_all_alike(lax.slice_in_dim(x, k, k + 1, 1, axis), int(n), axis) for k, n in enumerate(counts) if n]
    return lax.concatenate(pieces, axis) if pieces else lax.slice_in_dim(x, 0, 0, 1, axis)


def _all_alike(x: Value, count: int, axis: int) -> Value:
    shape = x.aval.shape
    wide = lax.broadcast_in_dim(
        x, (*shape[: axis + 1], count, *shape[axis + 1 :]), [d if d <= axis else d + 1 for d in range(len(shape))]
    )
    return lax.reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _counts_of(repeats: Value, x: Value, axis: int) -> Value:
    """One count for each element, int32."""
    if not dtypes.is_integer(repeats.aval.dtype):
        what = repeats.aval.str_short()
        raise OperandError(f"repeat: repeats must be integers, not {what}", "repeat")
    flat = lax.convert_element_type(ravel(repeats), np.int32)
    size = x.aval.shape[axis]
    if flat.aval.shape not in ((1,), (size,)):
        raise _not_one_each(repeats.aval.shape, x, axis)
    return broadcast_to_shape(flat, (size,))


def _not_one_each(shape: tuple[int, ...], x: Value, axis: int) -> OperandError:
    return OperandError(
        f"repeat: repeats of shape {shape} for axis {axis} of {x.aval.str_short()}: give one count, or one for each "
        f"of its {x.aval.shape[axis]} elements",
        "repeat",
    )


def _to_length(x: Value, counts: Value, axis: int, length: int) -> Value:
    """Position p of the result has the element before which `ends` are at most p; the last one has no end."""
    size = x.aval.shape[axis]
    if length < 0:
        raise OperandError(f"repeat: total_repeat_length must not be negative: {length}", "repeat")
    if length == 0:
        return lax.slice_in_dim(x, 0, 0, 1, axis)
    if size == 0:
        return x
    ends = lax.slice_in_dim(lax.cumsum(counts), 0, size - 1)
    passed = _added.bind(lax.full((size - 1,), np.int32(1)), lax.min(ends, np.int32(length)), axis=0, size=length + 1)
    result: Value = _taken.bind(x, lax.cumsum(lax.slice_in_dim(passed, 0, length)), axis=axis)
    return result


# ---- taking elements along an axis, and adding them

_taken = Primitive("taken_along_axis")
_added = Primitive("added_along_axis")


@_taken.def_meaning
def _take(x: Value, indices: Value, *, axis: int) -> Value:
    """x[..., indices[k], ...] for each k, along `axis`; the indices are in bounds and sorted."""
    shape = x.aval.shape
    attributes = GatherAttributes(
        offset_dims=tuple([d for d in range(len(shape)) if d != axis]),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=1,
        slice_sizes=tuple([1 if d == axis else s for d, s in enumerate(shape)]),
        indices_are_sorted=True,
    )
    return bind(Opcode.GATHER, (x, indices), attributes, weak_type=x.aval.weak_type)


@_added.def_meaning
def _add_at(updates: Value, indices: Value, *, axis: int, size: int) -> Value:
    """Zeros of `size` along `axis`, with updates[..., k, ...] added at indices[k]: the transpose of `_take`."""
    shape = updates.aval.shape
    zeros = lax.full((*shape[:axis], size, *shape[axis + 1 :]), 0, updates.aval.dtype)
    attributes = ScatterAttributes(
        update_window_dims=tuple([d for d in range(len(shape)) if d != axis]),
        inserted_window_dims=(axis,),
        scatter_dims_to_operand_dims=(axis,),
        index_vector_dim=1,
        to_apply=scalar_reducer(Opcode.ADD, element_type_of(updates.aval.dtype)),
        indices_are_sorted=True,
    )
    return bind(Opcode.SCATTER, (zeros, indices, updates), attributes)


@_taken.def_jvp
def _taken_jvp(primals: Any, tangents: Any, *, axis: int) -> tuple[Any, Any]:
    (x, indices), (t, _) = primals, tangents
    return _taken.bind(x, indices, axis=axis), _taken.bind(t, indices, axis=axis)


@_taken.def_transpose
def _taken_transpose(ct: Any, x: Any, indices: Any, *, axis: int) -> tuple[Any, ...]:
    return _added.bind(ct, indices, axis=axis, size=x.aval.shape[axis]) if isinstance(x, Linear) else None, None


@_added.def_jvp
def _added_jvp(primals: Any, tangents: Any, *, axis: int, size: int) -> tuple[Any, Any]:
    (x, indices), (t, _) = primals, tangents
    result = _added.bind(x, indices, axis=axis, size=size)
    return result, _added.bind(t, indices, axis=axis, size=size) if dtypes.is_inexact(x.aval.dtype) else None


@_added.def_transpose
def _added_transpose(ct: Any, x: Any, indices: Any, *, axis: int, size: int) -> tuple[Any, ...]:
    return _taken.bind(ct, indices, axis=axis) if isinstance(x, Linear) else None, None

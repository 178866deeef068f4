"""Operations on sparse arrays. Names and semantics follow jax.experimental.sparse.

A product visits each specified element once: it reads the matching elements of the other operand, and adds to the
result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...extend.primitive import Primitive
from ...hlo.errors import UnsupportedError
from ...lax.movement import canonical_axis
from ...numpy.advanced_indexing import ArrayIndex, split_index
from ...tracer.arrays.operators import ArrayBase
from ...tracer.compound import compound
from ...tracer.errors import OperandError
from ...tracer.tracer import Tracer
from .arrays import BCOO, BCSR, JAXSparse
from .layout import (
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_update_layout,
    compressed,
    coordinates,
    inside,
    made,
    over_batches,
    spread,
    with_data,
)

fromdense, update_layout, sum_duplicates, sort_indices = (
    bcoo_fromdense,
    bcoo_update_layout,
    bcoo_sum_duplicates,
    bcoo_sort_indices,
)


def as_coordinates(x: Any) -> BCOO:
    if isinstance(x, BCSR):
        return coordinates(x)
    return x if isinstance(x, BCOO) or not hasattr(x, "to_bcoo") else x.to_bcoo()  # type: ignore[no-any-return]


def _formatted(x: Any) -> Any:
    """An operand in a format that results have: a matrix in coordinates."""
    return x if isinstance(x, BCSR) else as_coordinates(x)


def _like(x: Any, found: BCOO) -> Any:
    """A result in the format of an operand."""
    return compressed(found) if isinstance(x, BCSR) else found


# ---- movement


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its dimensions in another order. Batch, sparse and dense dimensions keep to themselves.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [0.0, 5.0]]))
    >>> sparse.bcoo_transpose(m, permutation=(1, 0)).todense()
    Array([[0., 0.],
           [2., 5.]], dtype=float32)
    """
    order = [operator.index(d) for d in permutation]
    k, n = mat.n_batch, mat.n_batch + mat.n_sparse
    if sorted(order) != list(range(mat.ndim)):
        raise ValueError(f"transpose: {order} is not a permutation of {mat.ndim} dimensions")
    batch, sparse, dense = order[:k], order[k:n], order[n:]
    if sorted(batch) != list(range(k)) or sorted(sparse) != list(range(k, n)):
        raise UnsupportedError(
            f"transpose of {mat!r} by {order}: it mixes batch, sparse and dense dimensions\n  update_layout makes "
            "them sparse."
        )
    data = jnp.transpose(mat.data, [*batch, k, *[d - mat.n_sparse + 1 for d in dense]])
    indices = jnp.transpose(mat.indices, [*batch, k, k + 1])[..., np.array([d - k for d in sparse], int)]
    sizes = [mat._sizes[d - k] for d in sparse]
    still = sparse == sorted(sparse)
    return made(data, indices, sizes, is_sorted=mat.indices_sorted and still, unique=mat.unique_indices)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple([canonical_axis(a, x.ndim) for a in axes])
    return _like(x, bcoo_transpose(as_coordinates(x), permutation=order))


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """As `lax.broadcast_in_dim`. New dimensions before the first sparse or dense one are batch dimensions, those behind
    the first dense one are dense, and those between are sparse: these, and a sparse dimension of size 1 that grows,
    copy the elements.

    >>> m = sparse.bcoo_fromdense(jnp.array([0.0, 2.0]))
    >>> sparse.bcoo_broadcast_in_dim(m, shape=(3, 2), broadcast_dimensions=(1,)).todense()
    Array([[0., 2.],
           [0., 2.],
           [0., 2.]], dtype=float32)
    """
    places = list(broadcast_dimensions)
    if len(places) != mat.ndim or sorted(set(places)) != places:
        raise ValueError(f"broadcast_dimensions {places} do not fit {mat!r}")
    k, n = mat.n_batch, mat.n_batch + mat.n_sparse
    sparse = places[k:n]
    first = places[k] if k < len(places) else len(shape)
    last = places[n] if n < len(places) else len(shape)
    lead, tail = list(shape[:first]), list(shape[last:])
    inner = list(range(first, last))
    data_shape = (*lead, mat.nse, *tail)
    data = lax.broadcast_in_dim(mat.data, data_shape, [*places[:k], first, *[p - last + first + 1 for p in places[n:]]])
    indices = lax.broadcast_in_dim(mat.indices, (*lead, mat.nse, mat.n_sparse), [*places[:k], first, first + 1])
    columns: list[Any] = []
    for d in inner:
        if d in sparse:
            columns.append(indices[..., sparse.index(d)])
        else:
            columns.append(jnp.zeros(indices.shape[:-1], indices.dtype))
    grown = [d for d in inner if d not in sparse or mat._sizes[sparse.index(d)] != shape[d]]
    keep = lax.broadcast_in_dim(inside(mat), (*lead, mat.nse), [*places[:k], first])
    for d in grown:
        size = shape[d]
        data, keep, *columns = [jnp.repeat(v, size, axis=first) for v in (data, keep, *columns)]
        along = jnp.tile(jnp.arange(size, dtype=indices.dtype), data.shape[first] // max(size, 1))
        columns[d - first] = jnp.broadcast_to(along, columns[d - first].shape)
    sizes = [shape[d] for d in inner]
    found = jnp.stack(columns, -1) if columns else jnp.zeros((*keep.shape, 0), indices.dtype)
    found = jnp.where(keep[..., None], found, jnp.array(sizes, found.dtype))
    return made(data, found, sizes, unique=mat.unique_indices)


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """The array with another shape. The sizes of batch and dense dimensions stay products of their own.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcoo_reshape(m, new_sizes=(4,)).todense()
    Array([0., 2., 3., 0.], dtype=float32)
    """
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = [int(n) for n in new_sizes]
    if math.prod(sizes) != mat.size:
        raise OperandError(f"reshape: cannot reshape {mat!r} to {tuple(sizes)}", "sparse_reshape")
    batch, dense = math.prod(mat._batch()), math.prod(mat.data.shape[mat.n_batch + 1 :])
    first, last = _prefix(sizes, batch) if mat.n_batch else 0, len(sizes)
    if mat.n_dense:
        last -= _prefix(sizes[::-1], dense)
    if first > last:
        raise UnsupportedError(f"reshape of {mat!r} to {tuple(sizes)} mixes its layout")
    lead, inner, tail = sizes[:first], sizes[first:last], sizes[last:]
    flat: Any = 0
    for d, size in enumerate(mat._sizes):
        flat = flat * size + mat.indices[..., d]
    columns = []
    rest = jnp.asarray(flat) + jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    for size in reversed(inner):
        columns.append(rest % max(size, 1))
        rest = rest // max(size, 1)
    found = jnp.stack(columns[::-1], -1) if columns else jnp.zeros((*mat.indices.shape[:-1], 0), mat.indices.dtype)
    found = jnp.where(inside(mat)[..., None], found, jnp.array(inner, found.dtype))
    data = mat.data.reshape(*lead, mat.nse, *tail)
    return made(
        data, found.reshape(*lead, mat.nse, len(inner)), inner, is_sorted=mat.indices_sorted, unique=mat.unique_indices
    )


def _prefix(sizes: Sequence[int], wanted: int) -> int:
    """How many of the first sizes have the product `wanted`."""
    product = 1
    for k, size in enumerate(sizes):
        if product == wanted and size != 1:
            return k
        product *= size
    if product != wanted:
        raise UnsupportedError(f"reshape of a sparse array to {tuple(sizes)}: its batch and dense dimensions must stay")
    return len(sizes)


def reshape(x: BCOO, sizes: Sequence[int]) -> BCOO:
    given = [int(n) for n in sizes]
    if given.count(-1) == 1:
        known = -math.prod(given)
        given[given.index(-1)] = x.size // max(known, 1)
    return bcoo_reshape(x, new_sizes=given)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1.

    >>> sparse.bcoo_squeeze(sparse.bcoo_fromdense(jnp.array([[1.0, 0.0, 3.0]])), dimensions=(0,)).shape
    (3,)
    """
    gone = {canonical_axis(d, arr.ndim) for d in dimensions}
    if any(arr.shape[d] != 1 for d in gone):
        raise ValueError(f"squeeze: dimensions {tuple(dimensions)} of {arr!r} must have size 1")
    k, n = arr.n_batch, arr.n_batch + arr.n_sparse
    kept = [d for d in range(arr.n_sparse) if d + k not in gone]
    keep = inside(arr)
    sizes = [arr._sizes[d] for d in kept]
    indices = jnp.where(keep[..., None], arr.indices[..., np.array(kept, int)], jnp.array(sizes, arr.indices.dtype))
    data = jnp.where(spread(keep, arr.data), arr.data, 0)
    batch = [d for d in gone if d < k]
    dense = [d - arr.n_sparse + 1 for d in gone if d >= n]
    data, indices = jnp.squeeze(data, (*batch, *dense)), jnp.squeeze(indices, tuple(batch))
    return made(data, indices, sizes, is_sorted=arr.indices_sorted, unique=arr.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array backwards along dimensions.

    >>> sparse.bcoo_rev(sparse.bcoo_fromdense(jnp.array([1.0, 0.0, 3.0])), (0,)).todense()
    Array([3., 0., 1.], dtype=float32)
    """
    k, n = operand.n_batch, operand.n_batch + operand.n_sparse
    along = {canonical_axis(d, operand.ndim) for d in dimensions}
    batch, dense = [d for d in along if d < k], [d - operand.n_sparse + 1 for d in along if d >= n]
    data, indices = jnp.flip(operand.data, (*batch, *dense)), jnp.flip(operand.indices, tuple(batch))
    keep = jnp.flip(inside(operand), tuple(batch))
    turned = [d + k in along for d in range(operand.n_sparse)]
    sizes = jnp.array(operand._sizes, indices.dtype)
    moved = jnp.where(jnp.array(turned, bool), sizes - 1 - indices, indices)
    indices = jnp.where(keep[..., None], moved, sizes)
    return made(data, indices, operand._sizes, unique=operand.unique_indices)


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """As `lax.slice`. Elements outside of it become padding.

    >>> m = sparse.bcoo_fromdense(jnp.array([1.0, 0.0, 3.0, 4.0]))
    >>> sparse.bcoo_slice(m, start_indices=(1,), limit_indices=(3,)).todense()
    Array([0., 3.], dtype=float32)
    """
    steps = [1] * mat.ndim if strides is None else list(strides)
    if not len(start_indices) == len(limit_indices) == len(steps) == mat.ndim:
        raise ValueError(f"slice: each dimension of {mat!r} needs a start, a limit and a stride")
    cuts = [slice(a, b, s) for a, b, s in zip(start_indices, limit_indices, steps)]
    k, n = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = mat.data[(*cuts[:k], slice(None), *cuts[n:])], mat.indices[tuple(cuts[:k])]
    keep = inside(mat)[tuple(cuts[:k])]
    columns, sizes = [], []
    for d in range(k, n):
        place = indices[..., d - k] - start_indices[d]
        keep = keep & (place >= 0) & (indices[..., d - k] < limit_indices[d]) & (place % steps[d] == 0)
        columns.append(place // steps[d])
        sizes.append(len(range(start_indices[d], limit_indices[d], steps[d])))
    found = jnp.stack(columns, -1) if columns else indices
    found = jnp.where(keep[..., None], found, jnp.array(sizes, found.dtype))
    data = jnp.where(spread(keep, data), data, 0)
    return _bounded(made(data, found, sizes, unique=mat.unique_indices))


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """As `lax.dynamic_slice`: the starts may be traced. Negative ones count from the end, and all are moved so that the
    slice is inside of the array.

    >>> m = sparse.bcoo_fromdense(jnp.array([1.0, 0.0, 3.0, 4.0]))
    >>> sparse.bcoo_dynamic_slice(m, (1,), (2,)).todense()
    Array([0., 3.], dtype=float32)
    """
    sizes = [operator.index(n) for n in slice_sizes]
    if not len(start_indices) == len(sizes) == mat.ndim or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape)):
        raise ValueError(f"bcoo_dynamic_slice: each dimension of {mat!r} needs a start and a size in it, not {sizes}")
    k, n = mat.n_batch, mat.n_batch + mat.n_sparse
    starts = []
    for first, extent, length in zip(map(jnp.asarray, start_indices), mat.shape, sizes):
        starts.append(jnp.clip(jnp.where(first < 0, first + extent, first), 0, extent - length))
    zero = [jnp.zeros_like(s) for s in starts[:1]]
    data = lax.dynamic_slice(mat.data, [*starts[:k], *zero, *starts[n:]], [*sizes[:k], mat.nse, *sizes[n:]])
    indices = lax.dynamic_slice(mat.indices, [*starts[:k], *zero * 2], [*sizes[:k], mat.nse, mat.n_sparse])
    if not mat.n_sparse:
        return made(data, indices, (), unique=mat.unique_indices)
    size = jnp.array(sizes[k:n], indices.dtype)
    was_inside = (indices < jnp.array(mat._sizes, indices.dtype)).all(-1)
    place = indices - jnp.stack(starts[k:n]).astype(indices.dtype)
    keep = was_inside & ((place >= 0) & (place < size)).all(-1)
    found = jnp.where(keep[..., None], place, size)
    return _bounded(made(jnp.where(spread(keep, data), data, 0), found, sizes[k:n], unique=mat.unique_indices))


def _bounded(mat: BCOO) -> BCOO:
    """The array with no more elements than it has places: without that, products of products grow without bound."""
    places = math.prod(mat._sizes)
    return bcoo_sum_duplicates(mat, nse=places, remove_zeros=False) if places < mat.nse else mat


def getitem(x: Any, index: Any) -> Any:
    """Integers, slices, None and an ellipsis; arrays of integers and masks as in NumPy."""
    given = index if isinstance(index, tuple) else (index,)
    mat = as_coordinates(x)
    given = tuple([jnp.asarray(i) if isinstance(i, np.ndarray) else i for i in given])
    if any(isinstance(i, ArrayBase) and not _is_known_integer(i) for i in given):
        chosen = split_index(mat.shape, list(given))
        return _like_matrix(x, _chosen(getitem(mat, chosen.basic), chosen))
    count = sum(i is not None and i is not Ellipsis for i in given)
    if count > mat.ndim or sum(i is Ellipsis for i in given) > 1:
        raise IndexError(f"too many indices for {x!r}: {index}")
    full = [slice(None)] * (mat.ndim - count)
    if Ellipsis in [i for i in given if not hasattr(i, "shape")]:
        at = next(k for k, i in enumerate(given) if i is Ellipsis)
        given = (*given[:at], *full, *given[at + 1 :])
    else:
        given = (*given, *full)
    starts, limits, strides, d = [], [], [], 0
    backwards: list[int] = []
    gone: list[int] = []
    new: list[int] = []
    for item in given:
        if item is None:
            new.append(d - len(gone) + len(new))
            continue
        if isinstance(item, slice):
            start, stop, step = item.indices(mat.shape[d])
            if step < 0:
                span = range(start, stop, step)
                backwards.append(d)
                start, stop, step = (span[-1], span[0] + 1, -step) if span else (0, 0, 1)
            starts.append(start)
            limits.append(max(start, stop))
            strides.append(step)
        else:
            place = operator.index(item)
            if not -mat.shape[d] <= place < mat.shape[d]:
                raise IndexError(f"index {place} is out of bounds for {x!r}")
            place %= mat.shape[d]
            starts.append(place)
            limits.append(place + 1)
            strides.append(1)
            gone.append(d)
        d += 1
    found = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=strides)
    found = bcoo_rev(found, backwards) if backwards else found
    found = bcoo_squeeze(found, dimensions=gone) if gone else found
    if new:
        rank = found.ndim + len(new)
        places = [p for p in range(rank) if p not in new]
        sizes = iter(found.shape)
        shape = [1 if p in new else next(sizes) for p in range(rank)]
        found = bcoo_broadcast_in_dim(found, shape=shape, broadcast_dimensions=places)
    return _like_matrix(x, found)


def _is_known_integer(item: ArrayBase) -> bool:
    return item.ndim == 0 and item.dtype != np.bool_ and not isinstance(item, Tracer)


def _like_matrix(x: Any, found: BCOO) -> Any:
    """In the format of x, if that has results of this kind."""
    return _like(x, found) if isinstance(x, BCSR) and found.n_sparse == 2 else found


def _chosen(block: BCOO, index: ArrayIndex) -> BCOO:
    """The elements that arrays choose: the product with an array that has a 1 for each choice.

    Integers out of bounds are moved to the nearest place, as when a dense array is read.
    """
    sizes = [block.shape[d] for d in index.dimensions]
    columns = []
    for array, size in zip(index.arrays, sizes, strict=True):
        place = jnp.asarray(array)
        place = jnp.clip(jnp.where(place < 0, place + size, place), 0, max(size - 1, 0))
        columns.append(jnp.broadcast_to(place, index.joint).reshape(-1).astype(block.indices.dtype))
    count = math.prod(index.joint)
    if count and 0 in sizes:
        raise IndexError("index is out of bounds for an axis of size 0")
    numbers = jnp.arange(count, dtype=block.indices.dtype)
    ones = made(jnp.ones(count, block.dtype), jnp.stack([numbers, *columns], -1), [count, *sizes], unique=True)
    contracted = tuple(range(1, len(sizes) + 1))
    found = bcoo_dot_general(block, ones, dimension_numbers=((index.dimensions, contracted), ((), ())))
    rest = list(range(found.ndim - 1))
    order = [*rest[: index.place], found.ndim - 1, *rest[index.place :]]
    found = bcoo_transpose(found, permutation=order)
    others = [found.shape[d] for d in range(found.ndim) if d != index.place]
    return bcoo_reshape(found, new_sizes=[*others[: index.place], *index.joint, *others[index.place :]])


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The arrays one after another along a dimension. They must have the same layout.

    >>> m = sparse.bcoo_fromdense(jnp.array([0.0, 2.0]))
    >>> sparse.bcoo_concatenate([m, m], dimension=0).todense()
    Array([0., 2., 0., 2.], dtype=float32)
    """
    mats = list(operands)
    if len({(m.n_batch, m.n_sparse, m.n_dense) for m in mats}) != 1:
        raise OperandError(f"concatenate: the layouts of {mats} differ", "sparse_layout")
    first = mats[0]
    d, k, n = canonical_axis(dimension, first.ndim), first.n_batch, first.n_batch + first.n_sparse
    if any(m.shape[:d] + m.shape[d + 1 :] != first.shape[:d] + first.shape[d + 1 :] for m in mats):
        raise OperandError(f"concatenate: the shapes of {mats} differ", "sparse_shape")
    if not k <= d < n:
        if d >= n:
            raise UnsupportedError(f"concatenate of {first!r} along a dense dimension")
        most = max(m.nse for m in mats)
        mats = [_with_nse(m, most) for m in mats]
        data = jnp.concatenate([m.data for m in mats], d)
        return made(data, jnp.concatenate([m.indices for m in mats], d), first._sizes)
    sizes = list(first._sizes)
    sizes[d - k] = sum(m.shape[d] for m in mats)
    before, indices = 0, []
    for m in mats:
        shift = np.zeros(m.n_sparse, m.indices.dtype)
        shift[d - k] = before
        indices.append(jnp.where(inside(m)[..., None], m.indices + shift, jnp.array(sizes, m.indices.dtype)))
        before += m.shape[d]
    return made(jnp.concatenate([m.data for m in mats], k), jnp.concatenate(indices, k), sizes)


def _with_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with padding up to `nse` elements."""
    k, missing = mat.n_batch, nse - mat.nse
    if not missing:
        return mat
    outside = jnp.broadcast_to(jnp.array(mat._sizes, mat.indices.dtype), (*mat._batch(), missing, mat.n_sparse))
    none = jnp.zeros((*mat._batch(), missing, *mat.data.shape[k + 1 :]), mat.dtype)
    data, indices = jnp.concatenate([mat.data, none], k), jnp.concatenate([mat.indices, outside], k)
    return made(data, indices, mat._sizes)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """As `bcoo_concatenate`.

    >>> m = sparse.bcsr_fromdense(jnp.array([[0.0, 2.0]]))
    >>> sparse.bcsr_concatenate([m, m], dimension=0).todense()
    Array([[0., 2.],
           [0., 2.]], dtype=float32)
    """
    return compressed(bcoo_concatenate([coordinates(m) for m in operands], dimension=dimension))


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> BCSR:
    """As `bcoo_broadcast_in_dim`.

    >>> m = sparse.bcsr_fromdense(jnp.array([[0.0, 2.0]]))
    >>> sparse.bcsr_broadcast_in_dim(m, shape=(3, 2), broadcast_dimensions=(0, 1)).todense()
    Array([[0., 2.],
           [0., 2.],
           [0., 2.]], dtype=float32)
    """
    return compressed(bcoo_broadcast_in_dim(coordinates(mat), shape=shape, broadcast_dimensions=broadcast_dimensions))


# ---- sums


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over dimensions. The result has the elements of `mat`, at places that may occur more than once.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcoo_reduce_sum(m, axes=(0,)).todense()
    Array([3., 2.], dtype=float32)
    """
    gone = {canonical_axis(d, mat.ndim) for d in axes}
    lowest = min([d for d in gone if d < mat.n_batch], default=mat.n_batch)
    if lowest < mat.n_batch:
        mat = bcoo_update_layout(mat, n_batch=lowest)
    k, n = mat.n_batch, mat.n_batch + mat.n_sparse
    dense = tuple([d - mat.n_sparse + 1 for d in gone if d >= n])
    data = mat.data.sum(dense) if dense else mat.data
    kept = [d for d in range(mat.n_sparse) if d + k not in gone]
    keep, sizes = inside(mat), [mat._sizes[d] for d in kept]
    data = jnp.where(spread(keep, data), data, 0)
    if not kept and mat.n_sparse:
        data = data.sum(k, keepdims=True)
        return made(data, jnp.zeros((*data.shape[: k + 1], 0), mat.indices.dtype), ())
    indices = jnp.where(keep[..., None], mat.indices[..., np.array(kept, int)], jnp.array(sizes, mat.indices.dtype))
    return made(data, indices, sizes)


def sum_of(x: Any, axis: Any) -> Any:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    found = bcoo_reduce_sum(as_coordinates(x), axes=tuple(axes))
    return todense(found) if not found.ndim else found


# ---- element by element


@compound()
def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The numbers of `sp_mat` times a dense array's numbers at the same places; the array broadcasts to its shape.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcoo_multiply_dense(m, jnp.array([10.0, 100.0]))
    Array([200.,  30.], dtype=float32)
    """
    dense = jnp.asarray(v)
    if dense.ndim == 0:
        return sp_mat.data * dense
    if dense.ndim > sp_mat.ndim or any(a not in (1, b) for a, b in zip(dense.shape[::-1], sp_mat.shape[::-1])):
        raise OperandError(f"multiply: {dense.aval.str_short()} does not broadcast to {sp_mat!r}", "sparse_shape")
    dense = dense.reshape(*[1] * (sp_mat.ndim - dense.ndim), *dense.shape)
    k, n = sp_mat.n_batch, sp_mat.n_batch + sp_mat.n_sparse
    dense = jnp.broadcast_to(dense, (*sp_mat._batch(), *dense.shape[k:]))

    def of_one(data: Any, indices: Any, values: Any) -> Any:
        places = [indices[:, d] if values.shape[d] != 1 else 0 * indices[:, d] for d in range(n - k)]
        return data * (values[tuple(places)] if places else values[None])

    found = over_batches(of_one, k)(sp_mat.data, sp_mat.indices, dense)
    return jnp.where(spread(inside(sp_mat), found), found, 0)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The products of two arrays, with broadcasting: all pairs of elements are compared.

    >>> a, b = sparse.bcoo_fromdense(jnp.array([0.0, 2.0])), sparse.bcoo_fromdense(jnp.array([5.0, 7.0]))
    >>> sparse.bcoo_multiply_sparse(a, b).todense()
    Array([ 0., 14.], dtype=float32)
    """
    if lhs.shape != rhs.shape:
        try:
            shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
        except ValueError:
            raise OperandError(
                f"multiply: the shapes of {lhs!r} and {rhs!r} do not broadcast", "sparse_shape"
            ) from None
        lhs, rhs = (_with_batch(m, shape, 0) for m in (lhs, rhs))
    batch, dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = (bcoo_update_layout(m, n_batch=batch, n_dense=dense) for m in (lhs, rhs))

    def of_one(a: Any, i: Any, b: Any, j: Any) -> Any:
        same = (i[:, None] == j).all(-1)
        products = jnp.where(same.reshape(*same.shape, *[1] * (a.ndim - 1)), a[:, None] * b, 0)
        places = jnp.where(same[..., None], i[:, None], jnp.array(lhs._sizes, i.dtype))
        return products.reshape(same.size, *a.shape[1:]), places.reshape(same.size, i.shape[-1])

    data, indices = over_batches(of_one, batch)(lhs.data, lhs.indices, rhs.data, rhs.indices)
    keep = (indices < np.array(lhs._sizes)).all(-1)
    found = made(jnp.where(spread(keep, data), data, 0), indices, lhs._sizes)
    if lhs.unique_indices and rhs.unique_indices:
        found = bcoo_sum_duplicates(found, nse=min(lhs.nse, rhs.nse), remove_zeros=False)
    return found


def multiply(x: Any, other: Any) -> Any:
    if isinstance(other, JAXSparse):
        return _like(x, bcoo_multiply_sparse(as_coordinates(x), as_coordinates(other)))
    return with_data(_formatted(x), bcoo_multiply_dense(as_coordinates(x), other))


def divide(x: Any, other: Any) -> Any:
    if isinstance(other, JAXSparse):
        raise UnsupportedError(f"{x!r} / {other!r}: elements that are 0 would be divided by 0")
    return with_data(_formatted(x), bcoo_multiply_dense(as_coordinates(x), 1 / jnp.asarray(other)))


def add(x: Any, other: Any) -> Any:
    if not isinstance(other, JAXSparse):
        if not x.ndim:
            return todense(x) + other
        if jnp.ndim(other) == 0 and not hasattr(other, "aval") and other == 0:
            return x
        shape = jnp.shape(other)
        if jnp.broadcast_shapes(x.shape, shape) == shape:
            return todense(x) + other
        raise UnsupportedError(
            f"Addition between {x!r} and a dense array of shape {shape} is not implemented: the sum would be a larger "
            "dense array\n  todense() makes the array dense."
        )
    a, b = as_coordinates(x), as_coordinates(other)
    if a.shape != b.shape:
        raise OperandError(f"add: the shapes of {x!r} and {other!r} differ", "sparse_shape")
    batch, dense = min(a.n_batch, b.n_batch), min(a.n_dense, b.n_dense)
    a, b = (bcoo_update_layout(m, n_batch=batch, n_dense=dense) for m in (a, b))
    dtype = jnp.promote_types(a.dtype, b.dtype)
    data = jnp.concatenate([a.data.astype(dtype), b.data.astype(dtype)], batch)
    return _like(x, _bounded(made(data, jnp.concatenate([a.indices, b.indices], batch), a._sizes)))


# ---- products


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """As `lax.dot_general`, with one or two sparse operands. The result is dense, of two sparse operands sparse, with
    an element for each pair of theirs, but not more than the result has places.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcoo_dot_general(m, jnp.array([1.0, 10.0]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([20.,  3.], dtype=float32)
    """
    (lc, rc), (lb, rb) = [[tuple(map(int, s)) for s in pair] for pair in dimension_numbers]
    for a, b in zip((*lc, *lb), (*rc, *rb), strict=True):
        if lhs.shape[a] != rhs.shape[b]:
            raise OperandError(f"dot_general: dimension {a} of {lhs.shape} and {b} of {rhs.shape} differ", "dot")
    if isinstance(lhs, JAXSparse) and isinstance(rhs, JAXSparse):
        return _sparse_product(as_coordinates(lhs), as_coordinates(rhs), lc, rc, lb, rb)
    if isinstance(lhs, JAXSparse):
        found = _product(as_coordinates(lhs), jnp.asarray(rhs), lc, rc, lb, rb)
    elif isinstance(rhs, JAXSparse):
        found = _product(as_coordinates(rhs), jnp.asarray(lhs), rc, lc, rb, lb)
        batch, right = len(lb), rhs.ndim - len(rb) - len(rc)
        order = [*range(batch), *range(batch + right, found.ndim), *range(batch, batch + right)]
        found = jnp.transpose(found, order)
    else:
        return lax.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    return found if preferred_element_type is None else found.astype(preferred_element_type)


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """As `bcoo_dot_general`.

    >>> m = sparse.bcsr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcsr_dot_general(m, jnp.array([1.0, 10.0]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([20.,  3.], dtype=float32)
    """
    return bcoo_dot_general(
        lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _arranged(mat: BCOO, batch: Sequence[int], contracted: Sequence[int]) -> tuple[BCOO, list[int]]:
    """The array with `batch` as its batch dimensions, and all others sparse: contracted ones first. The other list has
    the free dimensions."""
    lowest = 0 if set(batch) != set(range(len(batch))) or len(batch) > mat.n_batch else len(batch)
    flat = bcoo_update_layout(mat, n_batch=lowest, n_dense=0)
    free = [d for d in range(mat.ndim) if d not in batch and d not in contracted]
    if lowest == len(batch):
        return bcoo_transpose(flat, permutation=[*batch, *contracted, *free]), free
    moved = bcoo_transpose(flat, permutation=[*batch, *contracted, *free])
    return bcoo_update_layout(moved, n_batch=len(batch), on_inefficient=None), free


@compound(static=("lc", "rc", "lb", "rb"))
def _product(mat: BCOO, dense: Any, lc: Any, rc: Any, lb: Any, rb: Any) -> Any:
    """[batch, free of the sparse operand, free of the dense one]."""
    arranged, free = _arranged(mat, lb, lc)
    others = [d for d in range(dense.ndim) if d not in rb and d not in rc]
    values = jnp.transpose(dense, [*rb, *rc, *others])
    dtype = jnp.promote_types(mat.dtype, dense.dtype)
    sizes, count = [mat.shape[d] for d in free], len(lc)
    keep = inside(arranged)
    data = jnp.where(keep, arranged.data, 0).astype(dtype)

    def of_one(data: Any, indices: Any, values: Any) -> Any:
        met = values[tuple(indices[:, c] for c in range(count))] if count else values[None]
        terms = data.reshape(data.size, *[1] * len(others)) * met.astype(dtype)
        if not free:
            return terms.sum(0)
        result = jnp.zeros((*sizes, *terms.shape[1:]), dtype)
        return result.at[tuple(indices[:, count + k] for k in range(len(free)))].add(terms, mode="drop")

    return over_batches(of_one, len(lb))(data, arranged.indices, values)


@compound(static=("lc", "rc", "lb", "rb"))
def _sparse_product(lhs: BCOO, rhs: BCOO, lc: Any, rc: Any, lb: Any, rb: Any) -> BCOO:
    a, free = _arranged(lhs, lb, lc)
    b, others = _arranged(rhs, rb, rc)
    count = len(lc)
    sizes = [lhs.shape[d] for d in free] + [rhs.shape[d] for d in others]
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    seen = inside(a), inside(b)

    def of_one(x: Any, i: Any, m: Any, y: Any, j: Any, n: Any) -> Any:
        same = (i[:, None, :count] == j[:, :count]).all(-1) & m[:, None] & n
        products = jnp.where(same, x.astype(dtype)[:, None] * y.astype(dtype), 0)
        left = jnp.broadcast_to(i[:, None, count:], (*same.shape, len(free)))
        right = jnp.broadcast_to(j[None, :, count:].astype(i.dtype), (*same.shape, len(others)))
        places = jnp.where(same[..., None], jnp.concatenate([left, right], -1), jnp.array(sizes, i.dtype))
        return products.reshape(same.size), places.reshape(same.size, len(sizes))

    data, indices = over_batches(of_one, len(lb))(a.data, a.indices, seen[0], b.data, b.indices, seen[1])
    return _bounded(made(data, indices, sizes))


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """The elements of `lax.dot_general(A, B)` at `indices` [*batch, nse, n].

    >>> a, b, numbers = jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 5.0], [4.0, 6.0]]), (((1,), (0,)), ((), ()))
    >>> sparse.bcoo_dot_general_sampled(a, b, jnp.array([[0, 1]]), dimension_numbers=numbers)
    Array([17.], dtype=float32)
    """
    dense = lax.dot_general(jnp.asarray(A), jnp.asarray(B), dimension_numbers)
    places = jnp.asarray(indices)
    k, n = places.ndim - 2, places.shape[-1]

    def of_one(values: Any, places: Any) -> Any:
        if not n:  # the one place, repeated
            return jnp.broadcast_to(values, (places.shape[0], *values.shape))
        return values.at[tuple(places[:, d] for d in range(n))].get(mode="fill", fill_value=0)

    return over_batches(of_one, k)(dense, places)


def matmul(x: Any, y: Any) -> Any:
    """``x @ y``: as of dense arrays."""
    if not isinstance(x, JAXSparse):
        x = jnp.asarray(x)
    if not isinstance(y, JAXSparse):
        y = jnp.asarray(y)
    if not x.ndim or not y.ndim:
        raise OperandError(f"matmul of {x!r} and {y!r}: scalars are not matrices", "matmul")
    inner = (x.ndim - 1, max(y.ndim - 2, 0))
    if y.ndim <= 2 or (x.ndim <= 2 and not isinstance(y, JAXSparse)):
        found = bcoo_dot_general(x, y, dimension_numbers=(((inner[0],), (inner[1],)), ((), ())))
        return jnp.moveaxis(found, 0, -2) if x.ndim == 2 and y.ndim > 2 else found
    if x.ndim == 1:
        found = matmul(_with_batch(x, (1,), 1), y)
        return bcoo_squeeze(found, dimensions=(-2,)) if isinstance(found, BCOO) else jnp.squeeze(found, -2)
    sizes = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (_with_batch(v, sizes, 2) for v in (x, y))
    batch = tuple(range(len(sizes)))
    return bcoo_dot_general(x, y, dimension_numbers=(((x.ndim - 1,), (y.ndim - 2,)), (batch, batch)))


def _with_batch(x: Any, sizes: tuple[int, ...], inner: int) -> Any:
    """The array broadcast to `sizes` in front of its last `inner` dimensions."""
    shape = (*sizes, *x.shape[x.ndim - inner :])
    if x.shape == shape:
        return x
    if not isinstance(x, JAXSparse):
        return jnp.broadcast_to(x, shape)
    places = range(len(shape) - x.ndim, len(shape))
    return bcoo_broadcast_in_dim(as_coordinates(x), shape=shape, broadcast_dimensions=tuple(places))


# ---- creation


def todense(arr: Any) -> Any:
    """A sparse array as a dense one; a dense one as it is.

    >>> sparse.todense(sparse.eye(2)), sparse.todense(jnp.array([1.0]))
    (Array([[1., 0.],
           [0., 1.]], dtype=float32), Array([1.], dtype=float32))
    """
    if isinstance(arr, JAXSparse):
        return bcoo_todense(as_coordinates(arr))
    if isinstance(arr, Tracer):  # `sparsify` traces with dense types, and finds the operation here
        return _TODENSE.bind(arr)
    return jnp.asarray(arr)


_TODENSE = Primitive("todense")
_TODENSE.def_meaning(lambda x: x)
_TODENSE.is_shown = True


def unique(x: Any) -> Any:
    """The array with each place once: functions that are not linear need that."""
    return x if x.unique_indices else x.sum_duplicates(nse=x.nse, remove_zeros=False)


def power(x: Any, exponent: Any) -> Any:
    """Each element to the power of a positive integer."""
    if not isinstance(exponent, int | np.integer) or exponent <= 0:
        what = f"integer_pow with non-positive exponent {exponent}" if isinstance(exponent, int) else "pow"
        raise UnsupportedError(
            f"sparse rule for {what} is not implemented because it would result in dense output: {x!r} ** "
            f"{exponent!r}\n  todense() makes an array dense."
        )
    found = unique(_formatted(x))
    return with_data(found, found.data**exponent)


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> Any:
    """An array of zeros without specified elements. sparse_format: "bcoo", "bcsr", "coo", "csr" or
    "csc".

    >>> sparse.empty((1000, 1000)).nse
    0
    """
    found = BCOO._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)
    return _in_format(found, sparse_format)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """1 on diagonal k of an N by M array. `n_batch` and `n_dense` as for `bcoo_fromdense`.

    >>> sparse.eye(1000).nse, (sparse.eye(3) @ jnp.arange(3.0))
    (1000, Array([0., 1., 2.], dtype=float32))
    """
    columns = N if M is None else M
    if kwds.get("n_batch") or kwds.get("n_dense"):
        found = bcoo_fromdense(jnp.eye(N, columns, k, dtype), index_dtype=index_dtype, **kwds)
        return _in_format(found, sparse_format)
    count = max(0, min(N, columns - k) if k >= 0 else min(N + k, columns))
    along = jnp.arange(count, dtype=index_dtype)
    indices = jnp.stack([along - min(k, 0), along + max(k, 0)], -1)
    found = made(jnp.ones(count, dtype), indices, (N, columns), is_sorted=True, unique=True)
    return _in_format(found, sparse_format)


def _in_format(found: BCOO, name: str) -> Any:
    if name == "bcoo":
        return found
    if name == "bcsr":
        return compressed(found)
    if name in ("coo", "csr", "csc"):
        return getattr(import_module(".matrices", __package__), name.upper()).from_bcoo(found)
    raise ValueError(f"sparse_format={name!r}: there are 'bcoo', 'bcsr', 'coo', 'csr' and 'csc'")

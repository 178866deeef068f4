"""Between dense and sparse, and between the layouts of BCOO arrays. Names and semantics follow
jax.experimental.sparse."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...autodiff.vmap import vmap
from ...tracer.arrays.array import Array
from ...tracer.compound import compound
from ...tracer.errors import OperandError
from .arrays import BCOO, BCSR, SparseEfficiencyError


def with_data(x: Any, data: Any) -> Any:
    """The array with other numbers at the same places."""
    found = copy.copy(x)
    found.data = data
    return found


def made(data: Any, indices: Any, sizes: Sequence[int], *, is_sorted: bool = False, unique: bool = False) -> BCOO:
    """The array of these sizes of sparse dimensions."""
    k = indices.ndim - 2
    shape = (*data.shape[:k], *sizes, *data.shape[k + 1 :])
    return BCOO((data, indices), shape=shape, indices_sorted=is_sorted, unique_indices=unique)


def over_batches(function: Any, count: int) -> Any:
    """The function of one element of the batch, for `count` batch dimensions."""
    for _ in range(count):
        function = vmap(function)
    return function


def inside(x: BCOO) -> Any:
    """[*batch, nse]: whether the element is in the array, not padding."""
    sizes = np.array(x._sizes, np.int32)
    return ((x.indices >= 0) & (x.indices < sizes)).all(-1)


def spread(mask: Any, data: Any) -> Any:
    """A mask of elements, with the dense dimensions of the data."""
    return mask.reshape(*mask.shape, *[1] * (data.ndim - mask.ndim))


def number_of(name: str, count: Any) -> int:
    """A number of elements that must be known."""
    if not isinstance(count, Array):
        raise ValueError(f"{name}: the number of elements must be given by nse= where values are traced")
    return int(count)


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32
) -> BCOO:
    """The BCOO array of a dense one: its nonzero elements in order.

    nse: how many elements there are in each batch, by default the most that any has; under jit it must be given.
    n_batch, n_dense: how many of the first dimensions are batch dimensions, and of the last ones dense.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.data, m.indices.tolist()
    (Array([2., 3.], dtype=float32), [[0, 1], [1, 0]])
    """
    dense = jnp.asarray(mat)
    n_sparse = dense.ndim - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(f"n_batch={n_batch} and n_dense={n_dense} do not fit {dense.aval.str_short()}")
    batch, sizes = dense.shape[:n_batch], dense.shape[n_batch : n_batch + n_sparse]
    total = math.prod(sizes)
    is_there = (dense != 0).any(tuple(range(n_batch + n_sparse, dense.ndim))).reshape(*batch, total)
    if nse is None:
        nse = number_of("BCOO.fromdense", is_there.sum(-1).max()) if is_there.size else 0
    places: Any = lax.sort(jnp.where(is_there, jnp.arange(total, dtype=jnp.int32), total), dimension=-1)
    missing = max(nse - total, 0)
    places = jnp.pad(places[..., : min(nse, total)], [(0, 0)] * n_batch + [(0, missing)], constant_values=total)
    columns, rest = [], places
    for size in reversed(sizes):
        columns.append(rest % max(size, 1))
        rest = rest // max(size, 1)
    outside = (places == total)[..., None]
    found = jnp.stack(columns[::-1], -1) if columns else jnp.zeros((*places.shape, 0), jnp.int32)
    indices = jnp.where(outside, jnp.array(sizes, jnp.int32), found).astype(index_dtype)
    none = jnp.zeros((*batch, nse, *dense.shape[n_batch + n_sparse :]), dense.dtype)
    result = BCOO((none, indices), shape=dense.shape)
    return with_flags(bcoo_extract(result, dense), True, True)


def with_flags(x: BCOO, is_sorted: bool, unique: bool) -> BCOO:
    return BCOO((x.data, x.indices), shape=x.shape, indices_sorted=is_sorted, unique_indices=unique)


@compound()
def bcoo_todense(mat: BCOO) -> Any:
    """The dense array.

    >>> m = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [0]])), shape=(4,))
    >>> sparse.bcoo_todense(m)
    Array([2., 0., 0., 1.], dtype=float32)
    """

    def of_one(data: Any, indices: Any) -> Any:
        zeros = jnp.zeros((*mat._sizes, *data.shape[1:]), data.dtype)
        if not mat._sizes:
            return data.sum(0)
        return zeros.at[tuple(indices[:, k] for k in range(len(mat._sizes)))].add(data, mode="drop")

    data = jnp.where(spread(inside(mat), mat.data), mat.data, 0)
    return over_batches(of_one, mat.n_batch)(data, mat.indices)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the places of a sparse one; 0 for padding.

    assume_unique: whether no place occurs twice; otherwise a repeated place keeps its number once and gets 0 for the
    rest, so that the array's elements equal those of `arr`. By default the array's own promise.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcoo_extract(m, jnp.array([[1.0, 5.0], [7.0, 8.0]])).data
    Array([5., 7.], dtype=float32)
    """
    dense = jnp.asarray(arr)
    if dense.shape != sparr.shape:
        raise OperandError(f"bcoo_extract: the shapes {sparr.shape} and {dense.shape} differ", "sparse_shape")

    def of_one(indices: Any, values: Any) -> Any:
        if not sparr._sizes:
            return values[None]
        return values[tuple(indices[:, k] for k in range(len(sparr._sizes)))]

    found = over_batches(of_one, sparr.n_batch)(sparr.indices, dense)
    keep = inside(sparr)
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    if not unique and assume_unique is not None:
        keep = keep & over_batches(_is_first, sparr.n_batch)(sparr.indices)
    return with_data(sparr, jnp.where(spread(keep, found), found, 0))  # type: ignore[no-any-return]


def _is_first(indices: Any) -> Any:
    """Whether an element is the first of its place."""
    same = (indices[:, None] == indices).all(-1)
    return ~jnp.tril(same, -1).any(-1)


# ---- order


def _sorted(indices: Any) -> tuple[Any, Any]:
    """[nse, n_sparse] in order, and the permutation."""
    count, columns = indices.shape
    places = jnp.arange(count, dtype=jnp.int32)
    if not columns:
        return indices, places
    *found, order = lax.sort([*[indices[:, k] for k in range(columns)], places], dimension=0, num_keys=columns)
    return jnp.stack(found, -1), order


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The elements in the order of their places.

    >>> m = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [0]])), shape=(4,))
    >>> sparse.bcoo_sort_indices(m).data
    Array([2., 1.], dtype=float32)
    """

    def of_one(data: Any, indices: Any) -> Any:
        ordered, order = _sorted(indices)
        return data[order], ordered

    data, indices = over_batches(of_one, mat.n_batch)(mat.data, mat.indices)
    return made(data, indices, mat._sizes, is_sorted=True, unique=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """Each place once, in order, with the sum of its elements. Padding goes last.

    nse: how many elements the result has, by default the most that any batch needs; under jit it must be given, and
    elements beyond it are lost. remove_zeros: whether places with only zeros are left out.

    >>> m = sparse.BCOO((jnp.array([1.0, 2.0, 4.0]), jnp.array([[3], [0], [3]])), shape=(4,))
    >>> sparse.bcoo_sum_duplicates(m).data
    Array([2., 5.], dtype=float32)
    """
    keep = inside(mat)
    if remove_zeros:
        keep = keep & (mat.data != 0).any(tuple(range(mat.n_batch + 1, mat.data.ndim)))
    outside = np.array(mat._sizes, np.int32)
    data = jnp.where(spread(keep, mat.data), mat.data, 0)
    indices = jnp.where(keep[..., None], mat.indices, outside.astype(mat.indices.dtype))

    def groups(indices: Any) -> Any:
        ordered, order = _sorted(indices)
        is_new = (ordered[1:] != ordered[:-1]).any(-1)
        number = jnp.concatenate([jnp.zeros(min(1, ordered.shape[0]), jnp.int32), jnp.cumsum(is_new.astype(jnp.int32))])
        return ordered, order, number

    ordered, order, number = over_batches(groups, mat.n_batch)(indices)
    if nse is None:
        is_inside = (ordered < outside).all(-1) if mat._sizes else jnp.ones(ordered.shape[:-1], bool)
        counts = jnp.where(is_inside, number + 1, 0)
        nse = number_of("sum_duplicates", counts.max()) if counts.size else 0

    def gather(data: Any, ordered: Any, order: Any, number: Any) -> Any:
        found = jnp.zeros((nse, *data.shape[1:]), data.dtype).at[number].add(data[order], mode="drop")
        places = jnp.broadcast_to(jnp.asarray(outside.astype(ordered.dtype)), (nse, ordered.shape[1]))
        return found, places.at[number].set(ordered, mode="drop")

    found, places = over_batches(gather, mat.n_batch)(data, ordered, order, number)
    return made(found, places, mat._sizes, is_sorted=True, unique=True)


# ---- batch and dense dimensions


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The array with other numbers of batch and dense dimensions.

    on_inefficient: "error" (SparseEfficiencyError), "warn" or None, where sparse dimensions become batch or dense ones,
    which makes the array larger.

    >>> m = sparse.bcoo_fromdense(jnp.ones((3, 4)))
    >>> sparse.bcoo_update_layout(m, n_batch=1, on_inefficient=None).data.shape
    (3, 4)
    """
    wanted_batch = mat.n_batch if n_batch is None else n_batch
    wanted_dense = mat.n_dense if n_dense is None else n_dense
    if wanted_batch < 0 or wanted_dense < 0 or wanted_batch + wanted_dense > mat.ndim:
        raise ValueError(f"n_batch={wanted_batch} and n_dense={wanted_dense} do not fit the shape {mat.shape}")
    if wanted_batch > mat.n_batch or wanted_dense > mat.n_dense:
        message = f"update_layout of {mat!r} to n_batch={wanted_batch}, n_dense={wanted_dense} makes it larger"
        if on_inefficient == "error":
            raise SparseEfficiencyError(f"{message}\n  on_inefficient=None allows it.")
        if on_inefficient == "warn":
            import warnings

            from .arrays import SparseEfficiencyWarning

            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
        low = bcoo_update_layout(mat, n_batch=min(wanted_batch, mat.n_batch), n_dense=min(wanted_dense, mat.n_dense))
        batch = mat.shape[:wanted_batch]
        places = math.prod(mat.shape[wanted_batch : mat.ndim - wanted_dense])
        return bcoo_fromdense(bcoo_todense(low), n_batch=len(batch), n_dense=wanted_dense, nse=min(low.nse, places))
    while mat.n_dense > wanted_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > wanted_batch:
        mat = _batch_to_sparse(mat)
    return mat


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense dimension as the last sparse one."""
    k = mat.n_batch
    size = mat.data.shape[k + 1]
    batch, nse = mat.data.shape[:k], mat.nse
    data = mat.data.reshape(*batch, nse * size, *mat.data.shape[k + 2 :])
    places = jnp.broadcast_to(mat.indices[..., None, :], (*batch, nse, size, mat.n_sparse))
    along = jnp.broadcast_to(jnp.arange(size, dtype=places.dtype)[:, None], (*batch, nse, size, 1))
    indices = jnp.concatenate([places, along], -1).reshape(*batch, nse * size, mat.n_sparse + 1)
    return made(data, indices, (*mat._sizes, size), is_sorted=mat.indices_sorted, unique=mat.unique_indices)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch dimension as the first sparse one."""
    k = mat.n_batch - 1
    size, nse = mat.indices.shape[k], mat.nse
    batch = mat.indices.shape[:k]
    along = jnp.broadcast_to(jnp.arange(size, dtype=mat.indices.dtype)[:, None, None], (*batch, size, nse, 1))
    indices = jnp.concatenate([along, mat.indices], -1).reshape(*batch, size * nse, mat.n_sparse + 1)
    data = mat.data.reshape(*batch, size * nse, *mat.data.shape[k + 2 :])
    return made(data, indices, (size, *mat._sizes), unique=mat.unique_indices)


# ---- compressed rows


def compressed(mat: BCOO) -> BCSR:
    if mat.n_sparse != 2:
        raise OperandError(f"a BCSR array has two sparse dimensions, not as {mat!r}", "bcsr")
    mat = mat if mat.indices_sorted else bcoo_sort_indices(mat)
    rows = mat._sizes[0]

    def pointers(row: Any) -> Any:
        counts = jnp.zeros(rows, row.dtype).at[row].add(1, mode="drop")
        return jnp.concatenate([jnp.zeros(1, row.dtype), jnp.cumsum(counts).astype(row.dtype)])

    indptr = over_batches(pointers, mat.n_batch)(mat.indices[..., 0])
    return BCSR(
        (mat.data, mat.indices[..., 1], indptr), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices
    )


def coordinates(mat: BCSR) -> BCOO:
    nse, rows = mat.nse, mat._sizes[0]

    def row_of(indptr: Any) -> Any:
        starts = jnp.zeros(nse + 1, indptr.dtype).at[indptr[1:]].add(1, mode="drop")
        return jnp.cumsum(starts)[:nse].astype(indptr.dtype)

    row = over_batches(row_of, mat.n_batch)(mat.indptr)
    column = jnp.where(row >= rows, jnp.asarray(mat._sizes[1], mat.indices.dtype), mat.indices)
    indices = jnp.stack([row.astype(column.dtype), column], -1)
    return made(mat.data, indices, mat._sizes, is_sorted=mat.indices_sorted, unique=mat.unique_indices)


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32
) -> BCSR:
    """The BCSR array of a dense one. Arguments as for `bcoo_fromdense`.

    >>> m = sparse.bcsr_fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> m.data, m.indices, m.indptr
    (Array([2., 3., 4.], dtype=float32), Array([1, 0, 1], dtype=int32), Array([0, 1, 3], dtype=int32))
    """
    return BCSR.fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)


def bcsr_todense(mat: BCSR) -> Any:
    """The dense array.

    >>> sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    return bcoo_todense(coordinates(mat))


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of a dense array at the places of a BCSR array.

    >>> m = sparse.bcsr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.bcsr_extract(m.indices, m.indptr, jnp.array([[1.0, 5.0], [7.0, 8.0]]))
    Array([5., 7.], dtype=float32)
    """
    dense = jnp.asarray(mat)
    k = jnp.ndim(indices) - 1
    data = jnp.zeros((*jnp.shape(indices), *dense.shape[k + 2 :]), dense.dtype)
    return bcoo_extract(coordinates(BCSR((data, indices, indptr), shape=dense.shape)), dense).data


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Each place once, in order. See `bcoo_sum_duplicates`.

    >>> m = sparse.BCSR((jnp.array([1.0, 2.0]), jnp.array([0, 0]), jnp.array([0, 2])), shape=(1, 3))
    >>> sparse.bcsr_sum_duplicates(m).data
    Array([3.], dtype=float32)
    """
    return mat.sum_duplicates(nse)

"""The functions of `jax.experimental.sparse` on the parts of sparse arrays: the public functions, on their parts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.experimental import sparse
from hloom.experimental.sparse import lobpcg


class SparseInfo(NamedTuple):
    """The metadata of a sparse array."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class COOInfo(NamedTuple):
    """The metadata of a COO matrix."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


# ---- BCOO and BCSR


def _bcoo(data: Any, indices: Any, info: SparseInfo) -> sparse.BCOO:
    return sparse.BCOO((data, indices), **info._asdict())


def _bcoo_fromdense(mat: Any, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32) -> Any:
    made = sparse.bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return made.data, made.indices


def _bcoo_todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    return sparse.bcoo_todense(_bcoo(data, indices, spinfo))


def _bcoo_extract(indices: Any, arr: Any, *, assume_unique: bool = True) -> Any:
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    data = jnp.zeros(indices.shape[:-1] + arr.shape[n_batch + n_sparse :], arr.dtype)
    there = sparse.BCOO((data, indices), shape=arr.shape)
    return sparse.bcoo_extract(there, arr, assume_unique=assume_unique).data


def _bcoo_dot_general(
    data: Any, indices: Any, rhs: Any, *, dimension_numbers: Any, preferred_element_type: Any, lhs_spinfo: SparseInfo
) -> Any:
    return sparse.bcoo_dot_general(
        _bcoo(data, indices, lhs_spinfo),
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def _bcsr_fromdense(mat: Any, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32) -> Any:
    made = sparse.bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return made.data, made.indices, made.indptr


def _without_data(indices: Any, count: int) -> Any:
    return jnp.zeros(indices.shape[:count])


def _bcoo_to_bcsr(indices: Any, *, shape: Any, index_dtype: Any) -> Any:
    data = _without_data(indices, indices.ndim - 1)
    made = sparse.BCSR.from_bcoo(sparse.BCOO((data, indices.astype(index_dtype)), shape=shape[: indices.ndim]))
    return made.indices, made.indptr


def _bcsr_to_bcoo(indices: Any, indptr: Any, *, shape: Any) -> Any:
    data = _without_data(indices, indices.ndim)
    return sparse.BCSR((data, indices, indptr), shape=shape[: indices.ndim + 1]).to_bcoo().indices


def _count_stored_elements_per_batch(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    found = mat != 0
    if n_dense:
        found = found.any(tuple(range(found.ndim - n_dense, found.ndim)))
    return found.sum(tuple(range(n_batch, found.ndim)))


def _count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    counts = _count_stored_elements_per_batch(mat, n_batch, n_dense)
    return counts.max() if counts.size else 0


# ---- matrices


def _csr(data: Any, indices: Any, indptr: Any, shape: Any) -> sparse.CSR:
    return sparse.CSR((data, indices, indptr), shape=shape)


def _csr_fromdense(mat: Any, *, nse: Any, index_dtype: Any = np.int32) -> Any:
    made = sparse.csr_fromdense(mat, nse=int(nse), index_dtype=index_dtype)
    return made.data, made.indices, made.indptr


def _csr_todense(data: Any, indices: Any, indptr: Any, *, shape: Any) -> Any:
    return sparse.csr_todense(_csr(data, indices, indptr, shape))


def _csr_matvec(data: Any, indices: Any, indptr: Any, v: Any, *, shape: Any, transpose: bool = False) -> Any:
    return sparse.csr_matvec(_csr(data, indices, indptr, shape), v, transpose=transpose)


def _csr_matmat(data: Any, indices: Any, indptr: Any, B: Any, *, shape: Any, transpose: bool = False) -> Any:
    return sparse.csr_matmat(_csr(data, indices, indptr, shape), B, transpose=transpose)


def _csr_to_coo(indices: Any, indptr: Any) -> Any:
    counts = indptr[1:] - indptr[:-1]
    rows = jnp.repeat(jnp.arange(counts.size, dtype=indices.dtype), counts, total_repeat_length=indices.size)
    return rows, indices


def _coo(data: Any, row: Any, col: Any, info: COOInfo) -> sparse.COO:
    return sparse.COO((data, row, col), **info._asdict())


def _coo_fromdense(mat: Any, *, nse: Any, index_dtype: Any = jnp.int32) -> Any:
    made = sparse.coo_fromdense(mat, nse=int(nse), index_dtype=index_dtype)
    return made.data, made.row, made.col


def _coo_todense(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Any:
    return sparse.coo_todense(_coo(data, row, col, spinfo))


def _coo_matvec(data: Any, row: Any, col: Any, v: Any, *, spinfo: COOInfo, transpose: bool = False) -> Any:
    return sparse.coo_matvec(_coo(data, row, col, spinfo), v, transpose=transpose)


def _coo_matmat(data: Any, row: Any, col: Any, B: Any, *, spinfo: COOInfo, transpose: bool = False) -> Any:
    return sparse.coo_matmat(_coo(data, row, col, spinfo), B, transpose=transpose)


def _bind_todense(*parts: Any, tree: Any) -> Any:
    return sparse.todense(hloom.tree.unflatten(tree, parts))


def _lobpcg_standard_matrix(A: Any, X: Any, m: int, tol: Any, debug: bool = False) -> Any:
    """All m steps of the search, and the state after each."""
    matrix = jnp.asarray(A)

    def turn(state: Any, _: None) -> tuple[Any, Any]:
        state = lobpcg._step(lambda x: matrix @ x, state, tol)
        zeros = {f"{name} zeros": jnp.all(x == 0, axis=0).sum() for name, x in (("X", state.X), ("P", state.moves))}
        return state, {"lambda history": state.values, "converged": state.converged, **zeros}

    last, history = lax.scan(turn, lobpcg._begin(lambda x: matrix @ x, jnp.asarray(X)), None, length=m)
    return last.values, last.X, m, history


_BY_MODULE: dict[str, tuple[Any, ...]] = {
    "bcoo": (_bcoo_fromdense, _bcoo_todense, _bcoo_extract, _bcoo_dot_general),
    "bcsr": (_bcsr_fromdense, _bcoo_to_bcsr, _bcsr_to_bcoo),
    "csr": (_csr_fromdense, _csr_todense, _csr_matvec, _csr_matmat),
    "coo": (_coo_fromdense, _coo_todense, _coo_matvec, _coo_matmat, COOInfo),
    "linalg": (_lobpcg_standard_matrix,),
    "util": (SparseInfo, _csr_to_coo, _count_stored_elements, _count_stored_elements_per_batch),
}

PUBLIC: dict[tuple[str, str], Any] = {
    ("experimental.sparse._lowerings", "SUPPORTED_DATA_DTYPES"): [np.float32, np.float64, np.complex64, np.complex128],
    ("experimental.sparse", "todense_p"): SimpleNamespace(bind=_bind_todense),
}
PUBLIC |= {(f"experimental.sparse.{m}", value.__name__): value for m, values in _BY_MODULE.items() for value in values}

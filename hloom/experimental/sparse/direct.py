"""A direct solver of sparse systems. Names and semantics follow jax.experimental.sparse.linalg."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...autodiff.tangents import Linear
from ...debug.callbacks import pure_callback
from ...extend.primitive import Primitive
from ...tracer.arrays.array import as_value
from ...tracer.arrays.operators import ArrayLike
from ...tracer.core import Value


def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1
) -> Value:
    """x of A x = b, for a square sparse matrix A in CSR format, by SciPy's sparse LU factors; NaN if A is singular.

    Args:
      data: the elements of A that are stored, [nse], in the order of its rows.
      indices: the column of each, [nse], integers.
      indptr: where each row begins, and the last one ends, [n + 1], integers.
      b: [n], of the dtype of data.
      tol, reorder: have no effect, as in JAX on CPUs; reorder is 0, 1, 2 or 3.

    Returns:
      x, of b's shape and dtype. It is differentiable in data and b, and can be batched.

    Raises:
      ValueError: shapes or dtypes that do not fit.

    >>> from hloom import numpy as jnp
    >>> from hloom.experimental.sparse import linalg
    >>> data, indices, indptr = jnp.array([2.0, 1.0, 4.0]), jnp.array([0, 0, 1]), jnp.array([0, 1, 3])
    >>> linalg.spsolve(data, indices, indptr, jnp.array([2.0, 5.0]))  # of [[2, 0], [1, 4]]
    Array([1., 1.], dtype=float32)
    """
    values, columns, starts, right = (as_value(v) for v in (data, indices, indptr, b))
    shapes = ", ".join(v.aval.str_short() for v in (values, columns, starts, right))
    where = f"got data, indices, indptr, b of {shapes}"
    if values.aval.dtype != right.aval.dtype:
        raise ValueError(f"spsolve: data and b must have one dtype; {where}")
    if not np.issubdtype(columns.aval.dtype, np.integer) or not np.issubdtype(starts.aval.dtype, np.integer):
        raise ValueError(f"spsolve: indices and indptr must be integers; {where}")
    if any(v.aval.ndim != 1 for v in (values, columns, starts, right)):
        raise ValueError(f"spsolve: all arrays must have one dimension; {where}")
    if starts.aval.size != right.aval.size + 1 or values.aval.shape != columns.aval.shape:
        raise ValueError(f"spsolve: the sizes are not those of a square matrix in CSR format; {where}")
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"spsolve: reorder must be 0, 1, 2 or 3, not {reorder!r}")
    float(tol)
    found: Value = _spsolve.bind(values, columns, starts, right, transpose=False)
    return found


_spsolve = Primitive("spsolve")
"""Operands: data, indices, indptr, b. With `transpose` the matrix is the transposed one."""


def _solve_on_host(data: Any, indices: Any, indptr: Any, b: Any, transpose: bool) -> Any:
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import MatrixRankWarning
    from scipy.sparse.linalg import spsolve as scipy_spsolve

    wide = np.result_type(b.dtype, np.float32)  # SciPy has no half precision
    matrix = csr_matrix((data.astype(wide), indices, indptr), shape=(b.size, b.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatrixRankWarning)
        found = scipy_spsolve((matrix.T if transpose else matrix).tocsc(), b.astype(wide))
    return np.asarray(found, b.dtype).reshape(b.shape)


@_spsolve.def_meaning
def _spsolve_meaning(data: Any, indices: Any, indptr: Any, b: Any, *, transpose: bool) -> Any:
    if not b.aval.size:
        return b
    return pure_callback(_solve_on_host, b, data, indices, indptr, b, transpose=transpose, vmap_method="sequential")


def _spsolve_jvp(primals: Any, tangents: Any, *, transpose: bool) -> tuple[Any, Any]:
    """A dx = db - dA x."""
    data, indices, indptr, b = primals
    moved_data, _, _, moved = tangents
    x = _spsolve.bind(data, indices, indptr, b, transpose=transpose)
    if moved_data is not None:
        rows = jnp.searchsorted(indptr, jnp.arange(data.aval.size), side="right").astype(indices.aval.dtype) - 1
        source, target = (rows, indices) if transpose else (indices, rows)
        product = jnp.zeros_like(x).at[target].add(moved_data * x[source])
        moved = -product if moved is None else moved - product
    if moved is None:
        return x, None
    return x, _spsolve.bind(data, indices, indptr, moved, transpose=transpose)


_spsolve.def_jvp(_spsolve_jvp, symbolic_zeros=True)


@_spsolve.def_transpose
def _spsolve_transpose(ct: Any, data: Any, indices: Any, indptr: Any, b: Any, *, transpose: bool) -> Any:
    if isinstance(data, Linear):
        raise TypeError("a solve is not linear in its matrix and cannot be transposed")
    return None, None, None, _spsolve.bind(data, indices, indptr, ct, transpose=not transpose)

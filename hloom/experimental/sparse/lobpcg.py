"""The largest eigenvalues of a symmetric matrix that is known by its products alone. Names and semantics follow
jax.experimental.sparse.linalg; A. V. Knyazev, SIAM J. Sci. Comput. 23 (2001), and J. A. Duersch et al., SIAM J. Sci.
Comput. 40 (2018), for the bases that stay orthonormal.

Bases are columns. Directions that a basis lacks, since they depend on others, are columns of zeros, so that all shapes
are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...tracer.arrays.array import as_value
from ...tracer.arrays.operators import ArrayLike
from ...tracer.core import Value
from ...tracer.jit import jit

Product = Callable[[Any], Any]


def lobpcg_standard(
    A: ArrayLike | Product, X: ArrayLike, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Value, Value, Value]:
    """The k largest eigenvalues of a symmetric or Hermitian matrix, and their vectors, by LOBPCG (locally optimal block
    preconditioned conjugate gradients) without a preconditioner.

    Args:
      A: [n, n], or a function from [n, j] to [n, j] that multiplies by it, for any j.
      X: [n, k], where the search begins: columns that are linearly independent, 0 < 5 k < n.
      m: the largest number of steps.
      tol: a pair (value, v) is found when |A v - value v| < 10 n tol (|value| + |A v|). None: the dtype's epsilon.

    Returns:
      The eigenvalues [k] from the largest on, their vectors [n, k], and the number of steps. It is not differentiable
      in reverse mode: the number of steps depends on the data.

    Raises:
      ValueError: X or the product has another shape or dtype than above.

    >>> from hloom import numpy as jnp
    >>> from hloom.experimental.sparse import linalg
    >>> values, vectors, steps = linalg.lobpcg_standard(jnp.diag(jnp.arange(20.0)), jnp.eye(20)[:, :2] + 0.1)
    >>> values.round(3)
    Array([19., 18.], dtype=float32)
    """
    columns = as_value(X)
    matrix: Any = A if callable(A) else as_value(A)
    product, search = (matrix, _of_a_function) if callable(A) else (partial(_times, matrix), _of_a_matrix)
    wrong = _wrong(product, columns)
    if wrong is not None:
        raise ValueError(f"lobpcg_standard: {wrong}")
    found: tuple[Value, Value, Value] = search(matrix, columns, m, tol)
    return found


def _wrong(product: Product, X: Value) -> str | None:
    if X.aval.ndim != 2:
        return f"X must be [n, k], got {X.aval.str_short()}"
    (n, k), dtype = X.aval.shape, X.aval.dtype
    if not np.issubdtype(dtype, np.inexact):
        return f"X must hold floats, got {X.aval.str_short()}"
    if k == 0:
        return f"must have search dim > 0, got {k}"
    if k * 5 >= n:
        return f"expected search dim * 5 < matrix dim (got {k * 5}, {n})"
    given = as_value(product(jnp.zeros((n, 1), dtype))).aval
    if given.dtype != dtype:
        return f"A, X must have same dtypes (were {given.dtype}, {dtype})"
    return None if given.shape == (n, 1) else f"A must be ({n}, {n}) matrix A, got output {given.shape}"


@partial(jit, static_argnames=("m",))
def _of_a_matrix(A: Any, X: Any, m: int, tol: Any) -> Any:
    return _search(partial(_times, A), X, m, tol)


@partial(jit, static_argnames=("A", "m"))
def _of_a_function(A: Any, X: Any, m: int, tol: Any) -> Any:
    return _search(A, X, m, tol)


class _State(NamedTuple):
    """The search after some steps: k columns of each are [X, moves, residuals], orthonormal but for the residuals."""

    X: Any
    moves: Any
    residuals: Any
    values: Any
    converged: Any


def _search(product: Product, X: Any, m: int, tol: Any) -> Any:
    k, limit = X.shape[1], jnp.finfo(X.dtype).eps if tol is None else tol

    def unfinished(state: Any) -> Any:
        return (state[0] < m) & (state[1].converged < k)

    def turn(state: Any) -> Any:
        return state[0] + 1, _step(product, state[1], limit)

    steps, last = lax.while_loop(unfinished, turn, (0, _begin(product, X)))
    return last.values, last.X, steps


def _begin(product: Product, X: Any) -> _State:
    X = _orthonormal(X)
    image = product(X)
    values = jnp.real(jnp.sum(jnp.conj(X) * image, axis=0))
    return _State(X, jnp.zeros_like(X), image - values.astype(X.dtype) * X, values, jnp.int32(0))


def _step(product: Product, state: _State, limit: Any) -> _State:
    """The best k vectors in the span of X, the last moves and the residuals."""
    X, moves = state.X, state.moves
    (n, k), dtype = X.shape, X.dtype
    known = jnp.concatenate([X, moves], axis=1)
    basis = jnp.concatenate([known, _without(known, state.residuals)], axis=1)
    values, vectors = _ritz(product, basis)
    X = _of_length_one(_times(basis, vectors[:, :k]))
    # The directions of the basis that span the last move together with X. Their coordinates are orthonormal, but some
    # may belong to columns of zeros.
    given_up, _ = jnp.linalg.qr(_adjoint(vectors[:k, k:]))
    moves = _without(X, _times(basis, _times(vectors[:, k:], given_up)))
    values, image = values[:k], product(X)
    residuals = image - values.astype(dtype) * X
    size = 10 * n * (_lengths(image) + jnp.abs(values))
    converged = jnp.sum(_lengths(residuals) < limit * size)
    return _State(X, moves, residuals, values, converged.astype(jnp.int32))


def _ritz(product: Product, basis: Any) -> tuple[Any, Any]:
    """All eigenvalues of the matrix within the span of a basis, from the largest on, and their coordinates."""
    projected = _times(_adjoint(basis), product(basis))
    # Columns of zeros have the eigenvalue 0, which may be larger than the matrix's eigenvalues: they come last.
    bound = 2 * jnp.max(jnp.sum(jnp.abs(projected), axis=0))
    missing = jnp.where(_lengths(basis) == 0, jnp.where(bound > 0, -bound, -1), 0)
    return _descending(projected + jnp.diag(missing.astype(basis.dtype)))


def _descending(matrix: Any) -> tuple[Any, Any]:
    values, vectors = jnp.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def _orthonormal(columns: Any) -> Any:
    """An orthonormal basis of the span of columns: twice, since once loses half of the digits."""
    return _nearly_orthonormal(_nearly_orthonormal(columns))


def _nearly_orthonormal(columns: Any) -> Any:
    """By the eigenvectors of the columns' products; eigenvectors with an eigenvalue that is rounding error become
    zeros."""
    columns = _of_length_one(columns)
    products = _times(_adjoint(columns), columns)
    values, vectors = _descending(products)
    least = jnp.finfo(columns.dtype).eps * values[0]
    kept = values > least
    scale = jnp.where(kept, lax.rsqrt(jnp.where(kept, values, 1)), 0)
    return _of_length_one(_times(columns, vectors * scale.astype(columns.dtype)))


def _without(basis: Any, columns: Any) -> Any:
    """An orthonormal basis of the columns' part outside the span of a basis (Kahan: twice is enough)."""
    for _ in range(2):
        columns = _orthonormal(columns - _times(basis, _times(_adjoint(basis), columns)))
    columns = columns - _times(basis, _times(_adjoint(basis), columns))
    # A column that was rounding error has been scaled up, and its part in the span with it.
    return jnp.where(_lengths(columns) >= 0.99, columns, 0)


def _times(a: Any, b: Any) -> Any:
    return lax.dot(a, b, precision=lax.Precision.HIGHEST)


def _adjoint(a: Any) -> Any:
    return jnp.conj(a.T)


def _lengths(columns: Any) -> Any:
    return jnp.linalg.norm(columns, axis=0)


def _of_length_one(columns: Any) -> Any:
    """Columns divided by their lengths; zeros stay zeros."""
    lengths = _lengths(columns)
    return columns / jnp.where(lengths == 0, 1, lengths).astype(columns.dtype)

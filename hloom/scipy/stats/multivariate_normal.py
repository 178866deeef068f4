"""`hloom.scipy.stats.multivariate_normal`: the normal distribution of vectors."""

from __future__ import annotations

import math

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...numpy.promotion import promote_dtypes_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..linalg import solve_triangular

__all__ = ["logpdf", "pdf"]


@compound(static=("allow_singular",))
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Value:
    """The logarithm of the density at the vectors x[..., :].

    cov: a matrix, or a number, which is the variance in each direction. Batches of points, means and matrices
      broadcast.
    allow_singular: NotImplementedError unless it is None, as in JAX. The matrix must be positive definite.

    >>> mean, cov = jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])
    >>> stats.multivariate_normal.logpdf(jnp.array([[0.0, 0.0], [1.0, 1.0]]), mean, cov).round(3)
    Array([-2.118, -2.689], dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf: the matrix must be regular")
    points, centre, matrix = promote_dtypes_inexact(x, mean, cov, name="multivariate_normal.logpdf")
    log_two_pi = math.log(2 * math.pi)
    if not centre.shape:
        return -0.5 * jnp.square(points - centre) / matrix - 0.5 * (log_two_pi + jnp.log(matrix))
    size = centre.shape[-1]
    y = points - centre
    if not matrix.shape:
        return -0.5 * jnp.square(y).sum(-1) / matrix - 0.5 * size * (log_two_pi + jnp.log(matrix))
    if matrix.ndim < 2 or matrix.shape[-2:] != (size, size):
        raise ValueError(
            f"multivariate_normal.logpdf got incompatible shapes: mean {centre.shape}, cov {matrix.shape}; "
            f"cov must be a number or end in {(size, size)}"
        )
    factor = jnp.linalg.cholesky(matrix)
    if matrix.ndim == 2:
        columns = y.reshape(-1, size).T
        white = solve_triangular(factor, columns, lower=True)
        square = jnp.square(white).sum(0).reshape(y.shape[:-1])
    else:
        batch = jnp.broadcast_shapes(y.shape[:-1], matrix.shape[:-2])
        rows = jnp.broadcast_to(y, (*batch, size))[..., None]
        white = solve_triangular(jnp.broadcast_to(factor, (*batch, size, size)), rows, lower=True)
        square = jnp.square(white).sum((-2, -1))
    half_log_determinant = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    return -0.5 * square - 0.5 * size * log_two_pi - half_log_determinant


@compound()
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Value:
    """The density at the vectors x[..., :]. Arguments as for `logpdf`.

    >>> mean, cov = jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])
    >>> stats.multivariate_normal.pdf(jnp.array([[0.0, 0.0], [1.0, 1.0]]), mean, cov).round(3)
    Array([0.12 , 0.068], dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))


_publish(__name__)

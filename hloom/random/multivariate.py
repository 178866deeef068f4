"""Random vectors and matrices that are products of normal numbers with a factor of a matrix.

Names and algorithms follow jax.random.
"""

from __future__ import annotations

import operator
from typing import Any

from numpy.typing import DTypeLike

from .. import lax
from .. import numpy as jnp
from ..autodiff.placed_results import computed_in
from ..lax.movement import canonical_shape
from ..numpy.promotion import promote_dtypes_inexact
from ..tracer import dtypes
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .continuous import normal
from .keys import single_key
from .parameters import float_dtype

_METHODS = ("svd", "eigh", "cholesky")


@compound(static=("shape", "dtype", "method", "out_sharding"))
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Value:
    """Normal vectors of a mean [..., n] and a covariance matrix [..., n, n]; the result is [*shape, n].

    Args:
      shape: the batch of vectors, by default the broadcast batch of `mean` and `cov`.
      method: the factor of `cov` is found by "cholesky", or, if it is singular, by "eigh" or "svd".

    >>> mean, cov = jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.9], [0.9, 1.0]])
    >>> x = random.multivariate_normal(random.key(0), mean, cov, (10000,))
    >>> x.shape, jnp.corrcoef(x.T)[0, 1].round(1)
    ((10000, 2), Array(0.9, dtype=float32))
    """
    if out_sharding is not None:
        given = mean, cov, shape, dtype, method
        return computed_in(out_sharding, "multivariate_normal", lambda: multivariate_normal(key, *given))
    one = single_key("multivariate_normal", key)
    center, covariance = promote_dtypes_inexact(mean, cov, name="multivariate_normal")
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: method must be one of {_METHODS}, not {method!r}")
    found = float_dtype(center.aval.dtype if dtype is None else dtype, "multivariate_normal")
    if center.aval.ndim < 1 or covariance.aval.ndim < 2:
        raise OperandError(
            f"multivariate_normal requires mean.ndim >= 1 and cov.ndim >= 2, got {center.aval.ndim} and "
            f"{covariance.aval.ndim}",
            "multivariate_normal",
        )
    size = center.aval.shape[-1]
    if covariance.aval.shape[-2:] != (size, size):
        raise OperandError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={size}, but got cov.shape == "
            f"{covariance.aval.shape}",
            "multivariate_normal",
        )
    batch = lax.broadcast_shapes(center.aval.shape[:-1], covariance.aval.shape[:-2])
    sizes = batch if shape is None else canonical_shape(shape)
    if lax.broadcast_shapes(batch, sizes) != sizes:
        raise OperandError(
            f"multivariate_normal: batches {center.aval.shape[:-1]} and {covariance.aval.shape[:-2]} of mean and cov "
            f"do not broadcast to shape {sizes}",
            "multivariate_normal",
        )
    draws = normal(one, (*sizes, size), found)
    return jnp.add(center, jnp.einsum("...ij,...j->...i", _factor(covariance, method), draws))


def _factor(covariance: Value, method: str) -> Value:
    """A matrix that gives `covariance` when multiplied by its transpose."""
    if method == "cholesky":
        return jnp.linalg.cholesky(covariance)
    if method == "svd":
        vectors, values, _ = jnp.linalg.svd(covariance)
    else:
        values, vectors = jnp.linalg.eigh(covariance)
    return jnp.multiply(vectors, jnp.expand_dims(jnp.sqrt(values), -2))


def orthogonal(
    key: Any,
    n: int,
    shape: Any = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Uniform orthogonal matrices [*shape, n, m] (unitary ones for complex dtypes); `m` is `n` by default.

    With n < m the rows are orthonormal, with n > m the columns. Source: Mezzadri, "How to generate random matrices from
    the classical compact groups" (Notices of the AMS 54, 2007).

    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
    True
    """
    rows = operator.index(n)
    columns, sizes = rows if m is None else operator.index(m), canonical_shape(shape)
    return computed_in(out_sharding, "orthogonal", lambda: _orthogonal(key, rows, columns, sizes, dtype))


@compound(static=("rows", "columns", "shape", "dtype"))
def _orthogonal(key: Any, rows: int, columns: int, shape: Any, dtype: DTypeLike | None) -> Value:
    found = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "orthogonal")
    longer, shorter = max(rows, columns), min(rows, columns)
    q, r = jnp.linalg.qr(normal(single_key("orthogonal", key), (*shape, longer, shorter), found))
    signs = jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    result = jnp.multiply(q, jnp.expand_dims(signs, -2))
    return jnp.matrix_transpose(result) if rows < columns else result

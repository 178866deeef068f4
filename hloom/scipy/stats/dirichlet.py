"""`hloom.scipy.stats.dirichlet`: Dirichlet's distribution on the simplex."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...numpy.promotion import promote_dtypes_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammaln, xlogy
from ..special.promoting import in_double

__all__ = ["logpdf", "pdf"]


def _log_density(points: Any, shapes: Any) -> Any:
    constant = gammaln(shapes).sum() - gammaln(shapes.sum())
    column = shapes.reshape(-1, *[1] * (points.ndim - 1))
    return xlogy(column - 1, points).sum(0) - constant


@compound()
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Value:
    """The logarithm of the density at the points x[:, ...]; -inf outside of the simplex, and its limit at the border.

    alpha: a vector of parameters. x may lack its last row, which follows from the others.

    >>> stats.dirichlet.logpdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 2.0])).round(3)
    Array(0.118, dtype=float32)
    """
    points, shapes = promote_dtypes_inexact(x, alpha, name="dirichlet.logpdf")
    if shapes.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={shapes.shape}")
    if not points.ndim or points.shape[0] not in (shapes.shape[0], shapes.shape[0] - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; "
            f"got x.shape={points.shape}, alpha.shape={shapes.shape}"
        )
    if points.shape[0] != shapes.shape[0]:
        points = jnp.concatenate([points, 1 - points.sum(0, keepdims=True)])
    inside = (points >= 0).all(0) & (abs(points.sum(0) - 1) < 1e-6)
    value = in_double(_log_density, jnp.where(inside, points, 1), shapes)
    return jnp.where((shapes > 0).all(), jnp.where(inside, value, -math.inf), math.nan)


@compound()
def pdf(x: ArrayLike, alpha: ArrayLike) -> Value:
    """The density at the points x[:, ...]; 0 outside of the simplex. Arguments as for `logpdf`.

    >>> stats.dirichlet.pdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 2.0])).round(3)
    Array(1.125, dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))


_publish(__name__)

"""Trends of signals. Names and semantics follow jax.scipy.signal."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...lax.movement import canonical_axis
from ...numpy.promotion import promote_dtypes_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None) -> Value:
    """The data without their trend along an axis.

    type: "linear" subtracts the straight line that fits best, "constant" the mean. bp: where further lines begin.

    >>> signal.detrend(jnp.array([1.0, 3.0, 5.0, 8.0]), type="constant")
    Array([-3.25, -1.25,  0.75,  3.75], dtype=float32)
    >>> signal.detrend(2.0 * jnp.arange(4.0) + 7.0).round(3) + 0.0
    Array([0., 0., 0., 0.], dtype=float32)
    """
    if overwrite_data is not None:
        raise UnsupportedError("detrend: overwrite_data argument not implemented")
    if type not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', not {type!r}")
    (x,) = promote_dtypes_inexact(jnp.asarray(data))
    place = canonical_axis(axis, x.aval.ndim)
    size = x.aval.shape[place]
    breaks = sorted({0, size, *(int(b) for b in np.ravel(bp))})
    if breaks[0] < 0 or breaks[-1] > size:
        raise ValueError(f"Breakpoints must be non-negative and less than length of data along given axis: {bp}")
    return _detrended(x, place, tuple(breaks) if type == "linear" else ())


@compound(static=("axis", "breaks"))
def _detrended(x: Value, axis: int, breaks: tuple[int, ...]) -> Value:
    """breaks: where lines begin and end; without any, the mean is subtracted."""
    if not breaks:
        return x - x.mean(axis, keepdims=True)
    x = jnp.moveaxis(x, axis, -1)
    parts = [_without_line(x[..., a:b]) for a, b in itertools.pairwise(breaks)]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


def _without_line(x: Any) -> Any:
    """The places are counted from their middle, so that mean and slope of the line are independent."""
    size = x.shape[-1]
    places = (np.arange(size) - (size - 1) / 2).astype(x.real.dtype)
    x = x - x.mean(-1, keepdims=True)
    if size < 2:
        return x
    slope = (x * places).sum(-1, keepdims=True) / (places**2).sum()
    return x - slope * places

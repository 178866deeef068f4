"""Distributions of floating-point numbers. Each begins with `uniform`.

Source for how bits become numbers: jax.random.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from ..lax.movement import canonical_shape
from ..numpy.promotion import broadcast_to_shape
from ..tracer import dtypes
from ..tracer.array import array_from_scalar
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.ops import convert, scalar_like
from ..tracer.source import user_line
from .drawing import compound_draw
from .keys import random_bits, single_key, split

__all__ = ["exponential", "gumbel", "laplace", "logistic", "normal", "truncated_normal", "uniform"]


def _float_dtype(dtype: DTypeLike | None, what: str) -> np.dtype[Any]:
    found = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "random")
    if not dtypes.is_floating(found):
        raise OperandError(f"{what} makes floating-point numbers, not {found.name}\n  at {user_line()}", what)
    return found


def sized(what: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The result's shape: the given one, to which the parameters must broadcast, or else that of the parameters."""
    own = lax.broadcast_shapes(*[np.shape(p) for p in parameters])
    if shape is None:
        return own
    sizes = canonical_shape(shape)
    if lax.broadcast_shapes(own, sizes) != sizes:
        raise OperandError(f"{what}: parameters of shape {own} do not broadcast to {sizes}\n  at {user_line()}", what)
    return sizes


@compound_draw()
def uniform(key: Any, shape: Any = (), dtype: DTypeLike | None = None, minval: Any = 0.0, maxval: Any = 1.0) -> Value:
    """Uniform on [minval, maxval): random mantissas of floats in [1, 2), shifted and scaled."""
    key, found, sizes = single_key("uniform", key), _float_dtype(dtype, "uniform"), canonical_shape(shape)
    low, high = (broadcast_to_shape(lax.convert_element_type(v, found), sizes) for v in (minval, maxval))
    width, mantissa = 8 * found.itemsize, int(dtypes.finfo(found).nmant)
    integer = np.dtype(f"uint{width}")
    random_width = 8 if mantissa < 8 else width
    random: Any = convert(random_bits(key, random_width, sizes), integer, False)
    one = array_from_scalar(int(np.ones((), found).view(integer)), integer)
    floats: Any = lax.bitcast_convert_type((random >> (random_width - mantissa)) | one, found)
    return lax.max(low, (floats - 1.0) * (high - low) + low)


def _above_minus_one(found: np.dtype[Any]) -> Any:
    """The smallest float above -1."""
    return np.nextafter(np.array(-1.0, found), np.array(0.0, found), dtype=found)


def _tiny(found: np.dtype[Any]) -> float:
    """The smallest normal float."""
    return float(dtypes.finfo(found).tiny)


@compound_draw()
def normal(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Normal of mean 0 and variance 1; complex dtypes: both parts have variance 1/2."""
    key = single_key("normal", key)
    if dtype is not None and dtypes.is_complex(dtypes.canonical_dtype(dtype)):
        found = dtypes.requested_dtype(dtype, "normal")
        real, imaginary = (normal(k, shape, dtypes.real_of(found)) for k in split(key))
        return lax.div(lax.complex(real, imaginary), lax.full((), math.sqrt(2), found))
    found = _float_dtype(dtype, "normal")
    u = uniform(key, shape, found, _above_minus_one(found), 1.0)
    drawn: Value = math.sqrt(2) * lax.erf_inv(u)
    return drawn


@compound(static=("shape", "dtype"))
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: DTypeLike | None = None) -> Value:
    """Normal of mean 0 and variance 1, given that it lies in (lower, upper)."""
    key, found = single_key("truncated_normal", key), _float_dtype(dtype, "truncated_normal")
    sizes = sized("truncated_normal", shape, lower, upper)
    low, high = (broadcast_to_shape(lax.convert_element_type(v, found), sizes) for v in (lower, upper))
    root: Any = scalar_like(low, math.sqrt(2))
    a, b = (lax.erf(v / root) for v in (low, high))
    result = root * lax.erf_inv(uniform(key, sizes, found, a, b))
    inside_low = lax.nextafter(lax.stop_gradient(low), lax.full_like(low, math.inf))
    inside_high = lax.nextafter(lax.stop_gradient(high), lax.full_like(high, -math.inf))
    return lax.clamp(inside_low, result, inside_high)


@compound_draw()
def exponential(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Exponential of mean 1."""
    u: Any = uniform(single_key("exponential", key), shape, _float_dtype(dtype, "exponential"))
    drawn: Value = -lax.log1p(-u)
    return drawn


@compound_draw(static=("shape", "dtype", "mode"))
def gumbel(key: Any, shape: Any = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Value:
    """Standard Gumbel: -log(-log(u))."""
    if mode not in (None, "low"):
        raise UnsupportedError(f"gumbel: mode {mode!r} is not supported; 'low' is")
    found = _float_dtype(dtype, "gumbel")
    u: Any = uniform(single_key("gumbel", key), shape, found, _tiny(found), 1.0)
    drawn: Value = -lax.log(-lax.log(u))
    return drawn


@compound_draw()
def laplace(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Laplace of mean 0 and scale 1."""
    found = _float_dtype(dtype, "laplace")
    u: Any = uniform(single_key("laplace", key), shape, found, _above_minus_one(found), 1.0)
    drawn: Value = lax.sign(u) * lax.log1p(-lax.abs(u))
    return drawn


@compound_draw()
def logistic(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Logistic of mean 0 and scale 1."""
    found = _float_dtype(dtype, "logistic")
    u: Any = uniform(single_key("logistic", key), shape, found, _tiny(found), 1.0)
    drawn: Value = lax.log(u) - lax.log1p(-u)
    return drawn

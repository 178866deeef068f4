"""Initializers with a variance that depends on the number of inputs and outputs of a layer.

Source: Glorot and Bengio (2010), He et al. (2015), LeCun et al. (1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax, random
from ...hlo.support.tracebacks import boundary
from ...lax.movement import canonical_shape
from ...tracer import dtypes
from ...tracer.core import Value
from .distributions import Initializer

# The standard deviation of a normal distribution truncated to two of them.
_TRUNCATED_STDDEV = 0.87962566103423978
# The same for complex numbers with a modulus of at most two of them.
_COMPLEX_TRUNCATED_STDDEV = 0.95311164380491208


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Variance scale / n, where n is the number of inputs ("fan_in"), outputs ("fan_out") or their mean ("fan_avg").

    "fan_geo_avg" is their geometric mean. `distribution`: "normal", "truncated_normal" or "uniform".

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.variance_scaling(2.0, "fan_out", "uniform")(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 100).round(1))
    ((300, 100), 2.0)
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        found = (
            dtypes.requested_dtype(default if dtype is None else dtype, "an initializer") if dtype or default else None
        )
        sizes = canonical_shape(shape)
        fan_in, fan_out = _fans(sizes, in_axis, out_axis, batch_axis)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        fans["fan_geo_avg"] = math.sqrt(fan_in * fan_out)
        if mode not in fans:
            raise ValueError(f"variance_scaling: mode {mode!r} is none of {', '.join(fans)}")
        variance = scale / max(fans[mode], 1e-30)
        if distribution == "normal":
            return _scaled(random.normal(key, sizes, found), variance)
        if found is not None and dtypes.is_complex(found) and distribution in ("truncated_normal", "uniform"):
            return _scaled(_of_complex(distribution, key, sizes, found), variance)
        if distribution == "truncated_normal":
            return _scaled(random.truncated_normal(key, -2, 2, sizes, found), variance, deviation=_TRUNCATED_STDDEV)
        if distribution == "uniform":
            return _scaled(random.uniform(key, sizes, found, -1), variance, times=3)
        raise ValueError(f"variance_scaling: unknown distribution {distribution!r}")

    return init


def _of_complex(distribution: str, key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Value:
    """Complex numbers of mean 0 and variance 1, of all directions alike: uniform in a disk, or normal with a modulus of
    at most 2 (before scaling)."""
    real = dtypes.real_of(dtype)
    for_modulus, for_angle = random.split(key)
    u: Any = random.uniform(for_modulus, shape, real)
    if distribution == "uniform":
        modulus: Any = lax.sqrt(2 * u)
    else:
        modulus = lax.sqrt(-lax.log(1 - (1 - math.exp(-4)) * u)) / _COMPLEX_TRUNCATED_STDDEV
    angle: Any = 2 * math.pi * random.uniform(for_angle, shape, real)
    return lax.complex(modulus * lax.cos(angle), modulus * lax.sin(angle))


def _scaled(x: Value, variance: float, times: int = 1, deviation: float = 1.0) -> Value:
    """x * sqrt(times * variance) / deviation. The factor is computed in x's type, as JAX does: a factor that is rounded
    once would change the last bit of most weights."""
    real = dtypes.real_of(x.dtype).type
    factor: Any = np.sqrt(real(times) * real(variance)) / real(deviation)
    scaled: Value = x * factor
    return scaled


def _fans(
    shape: tuple[int, ...],
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
) -> tuple[float, float]:
    """Inputs and outputs of each unit: a kernel's other dimensions count for both."""
    if len(shape) < 2 and in_axis == -2:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default in_axis. "
            f"Must be at least 2D or specify in_axis explicitly. The shape is {shape}"
        )

    def size(axes: int | Sequence[int]) -> float:
        return float(np.prod([shape[a] for a in (axes if isinstance(axes, Sequence) else [axes])]))

    field = math.prod(shape) / max(size(in_axis) * size(out_axis) * size(batch_axis), 1e-30)
    return size(in_axis) * field, size(out_axis) * field


def glorot_uniform(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Uniform of variance 2 / (inputs + outputs); also known as Xavier.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.glorot_uniform()(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 200).round(1))
    ((300, 100), 1.0)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Truncated normal of variance 2 / (inputs + outputs); also known as Xavier.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.glorot_normal()(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 200).round(1))
    ((300, 100), 1.0)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Uniform of variance 1 / inputs.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.lecun_uniform()(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 300).round(1))
    ((300, 100), 1.0)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Truncated normal of variance 1 / inputs.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.lecun_normal()(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 300).round(1))
    ((300, 100), 1.0)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Uniform of variance 2 / inputs; also known as Kaiming.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.he_uniform()(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 150).round(1))
    ((300, 100), 1.0)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Truncated normal of variance 2 / inputs; also known as Kaiming.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.he_normal()(random.key(0), (300, 100))
    >>> w.shape, float((w.std() ** 2 * 150).round(1))
    ((300, 100), 1.0)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal

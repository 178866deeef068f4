"""Activations: functions of each element. Source for names and meaning: jax.nn.

Those that have a corner, or whose terms overflow, are primitives, each followed by its derivative.
"""

from __future__ import annotations

import math
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..extend.core import Primitive
from ..lax.movement import canonical_axis
from ..numpy.promotion import promote_inexact, strong, strong_array
from ..tracer import dtypes
from ..tracer.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
]


def identity(x: Any) -> Value:
    """x."""
    return as_value(x)


# ---- rectifiers


def relu(x: Any) -> Value:
    """max(x, 0); NaN for NaN. Its derivative at 0 is 0."""
    result: Value = _relu.bind(x)
    return result


_relu = Primitive("relu", lambda x: jnp.where(x <= 0, 0, x))  # a maximum would take more instructions to test for NaN


@_relu.def_jvp
def _relu_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return relu(x), jnp.where(x > 0, t, 0)


def relu6(x: Any) -> Value:
    """min(max(x, 0), 6). Its derivatives at 0 and at 6 are 0."""
    result: Value = _relu6.bind(x)
    return result


_relu6 = Primitive("relu6", lambda x: jnp.minimum(jnp.maximum(x, 0), 6.0))


@_relu6.def_jvp
def _relu6_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return relu6(x), jnp.where((x > 0) & (x < 6), t, 0)


@compound()
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Value:
    """x where it is positive, else x * negative_slope."""
    value = as_value(x)
    return jnp.where(value >= 0, value, value * negative_slope)


def hard_tanh(x: Any) -> Value:
    """x limited to [-1, 1]. Its derivative at -1 and at 1 is 1."""
    value = as_value(x)
    return jnp.where(value > 1, 1, jnp.where(value < -1, -1, value))


def hard_sigmoid(x: Any) -> Value:
    """relu6(x + 3) / 6."""
    return relu6(as_value(x) + 3.0) / 6.0


def hard_silu(x: Any) -> Value:
    """x * hard_sigmoid(x)."""
    value = as_value(x)
    return value * hard_sigmoid(value)


hard_swish = hard_silu


# ---- smooth functions


def sigmoid(x: Any) -> Value:
    """1 / (1 + exp(-x))."""
    return lax.logistic(*promote_inexact("sigmoid", x))


def tanh(x: Any, /) -> Value:
    """The hyperbolic tangent."""
    return jnp.tanh(x)


@compound()
def softplus(x: Any) -> Value:
    """log(1 + exp(x)) without overflow."""
    value = promote_inexact("softplus", x, 0)[0]
    result: Value = _softplus.bind(strong_array(value) if dtypes.is_complex(value.aval.dtype) else value)
    return result


_softplus = Primitive("softplus")


@_softplus.def_meaning
def _softplus_meaning(x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return jnp.logaddexp(x, 0)
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-abs(x)))


@_softplus.def_jvp
def _softplus_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return softplus(x), t * lax.logistic(x)


@compound()
def log_sigmoid(x: Any) -> Value:
    """log(sigmoid(x))."""
    return -softplus(-as_value(x))


def log1mexp(x: Any) -> Value:
    """log(1 - exp(-x)), accurate for small and for large x.

    Source: Mächler, "Accurately computing log(1 - exp(-|a|))" (2012).
    """
    result: Value = _log1mexp.bind(*promote_inexact("log1mexp", x))
    return result


_log1mexp = Primitive("log1mexp")


@_log1mexp.def_meaning
def _log1mexp_meaning(x: Any) -> Any:
    return jnp.where(x < math.log(2.0), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


@_log1mexp.def_jvp
def _log1mexp_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """1 / (exp(x) - 1)."""
    (x,), (t,) = primals, tangents
    return log1mexp(x), t / jnp.expm1(x)


@compound()
def sparse_plus(x: Any) -> Value:
    """0 below -1, x above 1, and (x + 1)**2 / 4 between (Martins and Astudillo, 2016)."""
    value = as_value(x)
    middle: Any = value + 1.0
    return jnp.where(value <= -1.0, 0.0, jnp.where(value >= 1.0, value, middle**2 / 4))


@compound()
def sparse_sigmoid(x: Any) -> Value:
    """0 below -1, 1 above 1, and (x + 1) / 2 between: the derivative of `sparse_plus`."""
    return 0.5 * jnp.clip(as_value(x) + 1.0, 0.0, 2.0)


def soft_sign(x: Any) -> Value:
    """x / (1 + |x|)."""
    value = as_value(x)
    return value / (abs(value) + 1)


def silu(x: Any) -> Value:
    """x * sigmoid(x); also known as swish."""
    (value,) = promote_inexact("silu", x)
    return value * lax.logistic(value)


swish = silu


@compound()
def mish(x: Any) -> Value:
    """x * tanh(softplus(x))."""
    value = as_value(x)
    return value * jnp.tanh(softplus(value))


@compound()
def elu(x: Any, alpha: Any = 1.0) -> Value:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    value = as_value(x)
    positive = value > 0
    safe = jnp.where(positive, 0.0, value)  # so that exp's overflow makes no NaN in derivatives
    return jnp.where(positive, value, jnp.expm1(safe) * alpha)


@compound()
def celu(x: Any, alpha: Any = 1.0) -> Value:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    value = as_value(x)
    below: Value = jnp.expm1(jnp.minimum(value, 0.0) / alpha) * alpha
    return jnp.maximum(value, 0.0) + below


@compound()
def selu(x: Any) -> Value:
    """Scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""
    return elu(x, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946


@compound(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Value:
    """x times the normal distribution function of x; by tanh if `approximate`."""
    value = strong(*promote_inexact("gelu", x))
    if not approximate:
        return 0.5 * value * (lax.erf(value * math.sqrt(0.5)) + 1)
    cubic = value + 0.044715 * value**3
    return value * (0.5 * (1 + jnp.tanh(math.sqrt(2 / math.pi) * cubic)))


@compound(static=("axis",))
def glu(x: Any, axis: int = -1) -> Value:
    """The first half along `axis` times the sigmoid of the second."""
    value = as_value(x)
    axis = canonical_axis(axis, value.ndim)
    size = value.shape[axis]
    if size % 2:
        raise ValueError(f"glu: axis {axis} has odd size {size}")
    first, second = lax.split(value, [size // 2] * 2, axis)
    return first * sigmoid(second)


@compound()
def squareplus(x: Any, b: Any = 4) -> Value:
    """(x + sqrt(x**2 + b)) / 2."""
    value = as_value(x)
    return (value + jnp.sqrt(jnp.square(value) + b)) / 2

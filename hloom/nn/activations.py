"""Activations: functions of each element. Names and semantics follow jax.nn.

Functions with a corner, or with terms that overflow, are primitives; the derivative follows each.
"""

from __future__ import annotations

import math
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..extend.primitive import Primitive
from ..lax.movement import canonical_axis
from ..numpy.promotion import promote_inexact, strong, strong_array
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value


def identity(x: Any) -> Value:
    """x as an array, of the same shape and dtype.

    >>> nn.identity(jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return as_value(x)


# ---- rectifiers


@compound(frequent=True)
def relu(x: Any) -> Value:
    """max(x, 0); NaN for NaN. Its derivative at 0 is 0.

    Element by element; shape and dtype remain.

    >>> nn.relu(jnp.array([-1.0, 0.0, 2.0]))
    Array([0., 0., 2.], dtype=float32)
    """
    result: Value = _relu.bind(x)
    return result


_relu = Primitive("relu", lambda x: jnp.where(x <= 0, 0, x))  # a maximum would take more instructions to test for NaN


@_relu.def_jvp
def _relu_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return relu(x), jnp.where(x > 0, t, 0)


@compound(frequent=True)
def relu6(x: Any) -> Value:
    """min(max(x, 0), 6). Its derivatives at 0 and at 6 are 0.

    Element by element; integers become floats, the shape remains.

    >>> nn.relu6(jnp.array([-1.0, 2.0, 8.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    result: Value = _relu6.bind(x)
    return result


_relu6 = Primitive("relu6", lambda x: jnp.minimum(jnp.maximum(x, 0), 6.0))


@_relu6.def_jvp
def _relu6_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return relu6(x), jnp.where((x > 0) & (x < 6), t, 0)


@compound()
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Value:
    """x where it is positive, else x * negative_slope.

    Element by element; integers become floats, the shape remains.

    >>> nn.leaky_relu(jnp.array([-2.0, 3.0]), negative_slope=0.5)
    Array([-1.,  3.], dtype=float32)
    """
    value = as_value(x)
    return jnp.where(value >= 0, value, value * negative_slope)


@compound(frequent=True)
def hard_tanh(x: Any) -> Value:
    """x limited to [-1, 1]. Its derivative at -1 and at 1 is 1.

    Element by element; shape and dtype remain.

    >>> nn.hard_tanh(jnp.array([-2.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    value = as_value(x)
    return jnp.where(value > 1, 1, jnp.where(value < -1, -1, value))


@compound(frequent=True)
def hard_sigmoid(x: Any) -> Value:
    """relu6(x + 3) / 6.

    Element by element; integers become floats, the shape remains.

    >>> nn.hard_sigmoid(jnp.array([-4.0, 0.0, 1.5, 4.0]))
    Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return relu6(as_value(x) + 3.0) / 6.0


@compound(frequent=True)
def hard_silu(x: Any) -> Value:
    """x * hard_sigmoid(x).

    Element by element; integers become floats, the shape remains.

    >>> nn.hard_silu(jnp.array([-4.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)
    """
    value = as_value(x)
    return value * hard_sigmoid(value)


hard_swish = hard_silu


# ---- smooth functions


def sigmoid(x: Any) -> Value:
    """1 / (1 + exp(-x)).

    Element by element; integers become floats, the shape remains.

    >>> nn.sigmoid(jnp.array([-100.0, 0.0, 1.0])).round(3)
    Array([0.   , 0.5  , 0.731], dtype=float32)
    """
    return lax.logistic(*promote_inexact("sigmoid", x))


def tanh(x: Any, /) -> Value:
    """The hyperbolic tangent.

    Element by element; integers become floats, the shape remains.

    >>> nn.tanh(jnp.array([-1.0, 0.0, 1.0])).round(3)
    Array([-0.762,  0.   ,  0.762], dtype=float32)
    """
    return jnp.tanh(x)


@compound()
def softplus(x: Any) -> Value:
    """log(1 + exp(x)) without overflow.

    Element by element; integers become floats, the shape remains.

    >>> nn.softplus(jnp.array([-100.0, 0.0, 100.0])).round(3)
    Array([  0.   ,   0.693, 100.   ], dtype=float32)
    """
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
    """log(sigmoid(x)).

    Element by element; integers become floats, the shape remains.

    >>> nn.log_sigmoid(jnp.array([-100.0, 0.0, 100.0])).round(3)
    Array([-100.   ,   -0.693,   -0.   ], dtype=float32)
    """
    return -softplus(-as_value(x))


def log1mexp(x: Any) -> Value:
    """log(1 - exp(-x)), accurate for small and for large x.

    Source: Mächler, "Accurately computing log(1 - exp(-|a|))" (2012).

    Element by element; integers become floats, the shape remains.

    >>> nn.log1mexp(jnp.array([0.0, 1.0])).round(3)
    Array([  -inf, -0.459], dtype=float32)
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
    """0 below -1, x above 1, and (x + 1)**2 / 4 between (Martins and Astudillo, 2016).

    Element by element; integers become floats, the shape remains.

    >>> nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    value = as_value(x)
    middle: Any = value + 1.0
    return jnp.where(value <= -1.0, 0.0, jnp.where(value >= 1.0, value, middle**2 / 4))


@compound()
def sparse_sigmoid(x: Any) -> Value:
    """0 below -1, 1 above 1, and (x + 1) / 2 between: the derivative of `sparse_plus`.

    Element by element; integers become floats, the shape remains.

    >>> nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 0.5, 2.0]))
    Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return 0.5 * jnp.clip(as_value(x) + 1.0, 0.0, 2.0)


@compound(frequent=True)
def soft_sign(x: Any) -> Value:
    """x / (1 + |x|).

    Element by element; integers become floats, the shape remains.

    >>> nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
    Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    value = as_value(x)
    return value / (abs(value) + 1)


@compound(frequent=True)
def silu(x: Any) -> Value:
    """x * sigmoid(x); also known as swish.

    Element by element; integers become floats, the shape remains.

    >>> nn.silu(jnp.array([-1.0, 0.0, 1.0])).round(3)
    Array([-0.269,  0.   ,  0.731], dtype=float32)
    """
    (value,) = promote_inexact("silu", x)
    return value * lax.logistic(value)


swish = silu


@compound()
def mish(x: Any) -> Value:
    """x * tanh(softplus(x)).

    Element by element; integers become floats, the shape remains.

    >>> nn.mish(jnp.array([-1.0, 0.0, 1.0])).round(3)
    Array([-0.303,  0.   ,  0.865], dtype=float32)
    """
    value = as_value(x)
    return value * jnp.tanh(softplus(value))


@compound()
def elu(x: Any, alpha: Any = 1.0) -> Value:
    """x where it is positive, else alpha * (exp(x) - 1).

    Element by element; integers become floats, the shape remains.

    >>> nn.elu(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-0.632,  0.   ,  2.   ], dtype=float32)
    """
    value = as_value(x)
    positive = value > 0
    safe = jnp.where(positive, 0.0, value)  # so that exp's overflow makes no NaN in derivatives
    return jnp.where(positive, value, jnp.expm1(safe) * alpha)


@compound()
def celu(x: Any, alpha: Any = 1.0) -> Value:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0).

    Element by element; integers become floats, the shape remains.

    >>> nn.celu(jnp.array([-2.0, 0.0, 2.0]), alpha=2.0).round(3)
    Array([-1.264,  0.   ,  2.   ], dtype=float32)
    """
    value = as_value(x)
    below: Value = jnp.expm1(jnp.minimum(value, 0.0) / alpha) * alpha
    return jnp.maximum(value, 0.0) + below


@compound()
def selu(x: Any) -> Value:
    """Scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017).

    Element by element; integers become floats, the shape remains.

    >>> nn.selu(jnp.array([-1.0, 0.0, 1.0])).round(3)
    Array([-1.111,  0.   ,  1.051], dtype=float32)
    """
    return elu(x, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946


@compound(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Value:
    """x times the normal distribution function of x; by tanh if `approximate`.

    Element by element; integers become floats, the shape remains.

    >>> nn.gelu(jnp.array([-1.0, 0.0, 1.0])).round(3)
    Array([-0.159,  0.   ,  0.841], dtype=float32)
    >>> nn.gelu(jnp.array([1.0, 3.0]), approximate=False).round(3)
    Array([0.841, 2.996], dtype=float32)
    """
    value = strong(*promote_inexact("gelu", x))
    if not approximate:
        return 0.5 * value * lax.erfc(value * -math.sqrt(0.5))  # accurate where 1 + erf is 0
    cubic = value + 0.044715 * value**3
    return value * (0.5 * (1 + jnp.tanh(math.sqrt(2 / math.pi) * cubic)))


@compound(static=("axis",))
def glu(x: Any, axis: int = -1) -> Value:
    """The first half along `axis` times the sigmoid of the second.

    >>> nn.glu(jnp.array([3.0, 5.0, 0.0, jnp.inf]))
    Array([1.5, 5. ], dtype=float32)
    """
    value = as_value(x)
    axis = canonical_axis(axis, value.ndim)
    size = value.shape[axis]
    if size % 2:
        raise ValueError(f"glu: axis {axis} has odd size {size}, and must have an even one")
    first, second = lax.split(value, [size // 2] * 2, axis)
    return first * sigmoid(second)


@compound()
def squareplus(x: Any, b: Any = 4) -> Value:
    """(x + sqrt(x**2 + b)) / 2.

    Element by element; integers become floats, the shape remains.

    >>> nn.squareplus(jnp.array([-1.5, 0.0, 1.5]))
    Array([0.5, 1. , 2. ], dtype=float32)
    """
    value = as_value(x)
    return (value + jnp.sqrt(jnp.square(value) + b)) / 2

"""`hloom.nn`: activations and what classifiers need. Source for names and meaning: jax.nn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..lax.movement import canonical_axis
from ..numpy.promotion import Axis, promote_inexact
from ..numpy.reduce import logsumexp
from ..tracer import dtypes
from ..tracer.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert
from . import initializers as initializers

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
    "initializers",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def identity(x: Any) -> Value:
    """x."""
    return as_value(x)


def relu(x: Any) -> Value:
    """max(x, 0); its derivative at 0 is 0."""
    value = as_value(x)
    return jnp.where(jnp.greater(value, 0), value, lax.full_like(value, 0))


def relu6(x: Any) -> Value:
    """min(max(x, 0), 6)."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


def sigmoid(x: Any) -> Value:
    """1 / (1 + exp(-x))."""
    return lax.logistic(*promote_inexact("sigmoid", x))


def tanh(x: Any) -> Value:
    """The hyperbolic tangent."""
    return jnp.tanh(x)


@compound()
def softplus(x: Any) -> Value:
    """log(1 + exp(x))."""
    return jnp.logaddexp(x, 0)


def soft_sign(x: Any) -> Value:
    """x / (1 + |x|)."""
    value = as_value(x)
    return jnp.divide(value, jnp.add(jnp.abs(value), 1))


def silu(x: Any) -> Value:
    """x * sigmoid(x); also known as swish."""
    (value,) = promote_inexact("silu", x)
    return lax.mul(value, lax.logistic(value))


swish = silu


@compound()
def mish(x: Any) -> Value:
    """x * tanh(softplus(x))."""
    (value,) = promote_inexact("mish", x)
    return lax.mul(value, lax.tanh(softplus(value)))


@compound()
def log_sigmoid(x: Any) -> Value:
    """log(sigmoid(x))."""
    return jnp.negative(softplus(jnp.negative(x)))


@compound()
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Value:
    """x where it is positive, else x * negative_slope."""
    value = as_value(x)
    return jnp.where(jnp.greater_equal(value, 0), value, jnp.multiply(value, negative_slope))


@compound()
def elu(x: Any, alpha: Any = 1.0) -> Value:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    value = as_value(x)
    positive = jnp.greater(value, 0)
    safe = jnp.where(positive, 0.0, value)  # so that exp's overflow makes no NaN in derivatives
    return jnp.where(positive, value, jnp.multiply(jnp.expm1(safe), alpha))


@compound()
def celu(x: Any, alpha: Any = 1.0) -> Value:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    value = as_value(x)
    return jnp.add(
        jnp.maximum(value, 0.0),
        jnp.multiply(jnp.expm1(jnp.divide(jnp.minimum(value, 0.0), alpha)), alpha),
    )


@compound()
def selu(x: Any) -> Value:
    """Scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""
    return jnp.multiply(elu(x, 1.6732632423543772848170429916717), 1.0507009873554804934193349852946)


@compound(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Value:
    """x times the normal distribution function of x; by tanh if `approximate`."""
    (value,) = promote_inexact("gelu", x)
    if not approximate:
        half = lax.full_like(value, 0.5)
        scaled = lax.mul(value, lax.full_like(value, math.sqrt(0.5)))
        return lax.mul(lax.mul(half, value), lax.add(lax.erf(scaled), lax.full_like(value, 1)))
    cubic = lax.add(value, lax.mul(lax.full_like(value, 0.044715), lax.integer_pow(value, 3)))
    inner = lax.tanh(lax.mul(lax.full_like(value, math.sqrt(2 / math.pi)), cubic))
    cdf = lax.mul(lax.full_like(value, 0.5), lax.add(lax.full_like(value, 1), inner))
    return lax.mul(value, cdf)


@compound(static=("axis",))
def glu(x: Any, axis: int = -1) -> Value:
    """The first half along `axis` times the sigmoid of the second."""
    value = as_value(x)
    axis = canonical_axis(axis, value.aval.ndim)
    size = value.aval.shape[axis]
    if size % 2:
        raise ValueError(f"glu: axis {axis} has odd size {size}")
    first, second = lax.split(value, [size // 2] * 2, axis)
    return jnp.multiply(first, sigmoid(second))


def hard_tanh(x: Any) -> Value:
    """x limited to [-1, 1]."""
    return jnp.clip(x, -1, 1)


def hard_sigmoid(x: Any) -> Value:
    """relu6(x + 3) / 6."""
    return jnp.divide(relu6(jnp.add(x, 3.0)), 6.0)


def hard_silu(x: Any) -> Value:
    """x * hard_sigmoid(x)."""
    return jnp.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@compound()
def squareplus(x: Any, b: Any = 4) -> Value:
    """(x + sqrt(x**2 + b)) / 2."""
    (value,) = promote_inexact("squareplus", x)
    return jnp.multiply(jnp.add(value, jnp.sqrt(jnp.add(lax.square(value), b))), 0.5)


def _shifted(x: Value, axis: Axis, where: Any) -> Value:
    """x minus its largest value over `axis`, which is a constant to differentiation."""
    largest = jnp.max(x, axis, keepdims=True, where=where, initial=-math.inf)
    return jnp.subtract(x, lax.stop_gradient(largest))


@compound(static=("axis",))
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Value:
    """exp(x) normalised to sum 1 over `axis`; elements where `where` is false count as 0."""
    (value,) = promote_inexact("softmax", x)
    unnormalized = jnp.exp(_shifted(value, axis, where))
    result = jnp.divide(unnormalized, jnp.sum(unnormalized, axis, keepdims=True, where=where))
    return result if where is None else jnp.where(where, result, 0.0)


@compound(static=("axis",))
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Value:
    """log(softmax(x)), accurate where softmax underflows; -inf where `where` is false."""
    (value,) = promote_inexact("log_softmax", x)
    shifted = _shifted(value, axis, where)
    total = jnp.log(jnp.sum(jnp.exp(shifted), axis, keepdims=True, where=where))
    result = jnp.subtract(shifted, total)
    return result if where is None else jnp.where(where, result, -math.inf)


@compound(static=("axis",))
def standardize(
    x: Any, axis: Axis = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, where: Any = None
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over `axis`."""
    (value,) = promote_inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(value, axis, keepdims=True, where=where)
    if variance is None:
        squares = jnp.mean(jnp.square(value), axis, keepdims=True, where=where)
        variance = jnp.subtract(squares, jnp.square(mean))
    return jnp.multiply(jnp.subtract(value, mean), lax.rsqrt(jnp.add(variance, epsilon)))


@compound(static=("num_classes", "dtype", "axis"))
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Value:
    """1 at the place that x names along a new axis of `num_classes`, else 0; all 0 for an x out of range."""
    value = as_value(x)
    found = dtypes.canonical_dtype(dtypes.default_float() if dtype is None else dtype)
    place = canonical_axis(axis, value.aval.ndim + 1)
    shape = list(value.aval.shape)
    shape.insert(place, num_classes)
    index_dtype = value.aval.dtype if value.aval.dtype != np.bool_ else np.dtype(np.int32)
    classes = lax.broadcasted_iota(index_dtype, shape, place)
    others = [d for d in range(len(shape)) if d != place]
    wanted = lax.broadcast_in_dim(convert(value, index_dtype, False), shape, others)
    return lax.convert_element_type(lax.eq(wanted, classes), found)

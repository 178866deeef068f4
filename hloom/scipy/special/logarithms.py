"""Logarithms of probabilities, entropies and normalisations. Source for names and meaning: jax.scipy.special."""

from __future__ import annotations

import math
from typing import Any

from ... import lax
from ... import numpy as jnp
from ...extend.core import Primitive
from ...nn import normalization
from ...nn.normalization import logsumexp
from ...numpy.promotion import Axis, promote_inexact
from ...tracer import dtypes
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from .promoting import real

__all__ = [
    "boxcox",
    "boxcox1p",
    "entr",
    "expit",
    "kl_div",
    "log_softmax",
    "logit",
    "logsumexp",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
]


@compound(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Value:
    """exp(x) / sum(exp(x)) over `axis`, all axes if it is None."""
    return normalization.softmax(x, axis=axis)


@compound(static=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Value:
    """log(softmax(x)) over `axis`, all axes if it is None."""
    return normalization.log_softmax(x, axis=axis)


@compound()
def expit(x: ArrayLike) -> Value:
    """1 / (1 + exp(-x)), of real or complex numbers."""
    return lax.logistic(*promote_inexact("expit", x))


@compound()
def logit(x: ArrayLike) -> Value:
    """log(x / (1 - x)); infinite at 0 and 1, NaN outside for real x."""
    result: Value = _logit.bind(*promote_inexact("logit", x))
    return result


_logit = Primitive("logit")


@_logit.def_meaning
def _logit_meaning(x: Any) -> Any:
    """Near 1/2 the logarithm is small: log1p((2 x - 1) / (1 - x)), in which 2 x - 1 is exact."""
    direct = lax.log(x / (1 - x))
    if dtypes.is_complex(x.aval.dtype):
        return direct
    near = (x > 0.3) & (x < 0.7)
    return jnp.where(near, lax.log1p((2 * x - 1) / (1 - jnp.where(near, x, 0.5))), direct)


@_logit.def_jvp
def _logit_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _logit.bind(x), t / (x * (1 - x))


@compound()
def xlogy(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(y), and 0 where x is 0 and y is not NaN."""
    result: Value = _xlogy.bind(*promote_inexact("xlogy", x, y))
    return result


_xlogy = Primitive("xlogy", lambda x, y: jnp.where((x != 0) | (y != y), x * lax.log(y), lax.full_like(x, 0)))


@_xlogy.def_jvp
def _xlogy_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, y), (s, t) = primals, tangents
    return _xlogy.bind(x, y), s * lax.log(y) + t * x / y


@compound()
def xlog1py(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(1 + y), and 0 where x is 0 and y is not NaN."""
    result: Value = _xlog1py.bind(*promote_inexact("xlog1py", x, y))
    return result


_xlog1py = Primitive("xlog1py", lambda x, y: jnp.where((x != 0) | (y != y), x * lax.log1p(y), lax.full_like(x, 0)))


@_xlog1py.def_jvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, y), (s, t) = primals, tangents
    return _xlog1py.bind(x, y), s * lax.log1p(y) + t * x / (1 + y)


_xlogx = Primitive("xlogx", lambda x: _xlogy.bind(x, x))


@_xlogx.def_jvp
def _xlogx_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _xlogx.bind(x), t * (lax.log(x) + 1)


@compound()
def entr(x: ArrayLike) -> Value:
    """-x log(x), 0 at 0, and -inf for x < 0."""
    (value,) = real("entr", x)
    return lax.select(value < 0, lax.full_like(value, -math.inf), -_xlogx.bind(value))


@compound()
def rel_entr(p: ArrayLike, q: ArrayLike) -> Value:
    """p log(p / q) where both are positive, 0 for p = 0 and q >= 0, else inf."""
    return _rel_entr(*real("rel_entr", p, q))


def _rel_entr(p: Any, q: Any) -> Value:
    positive = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(positive, p, 1), jnp.where(positive, q, 1)
    inside = _xlogx.bind(safe_p) - _xlogy.bind(safe_p, safe_q)
    outside = jnp.where((p == 0) & (q >= 0), 0.0, jnp.where((p != p) | (q != q), math.nan, math.inf))
    result: Value = jnp.where(positive, inside, outside)
    return result


@compound()
def kl_div(p: ArrayLike, q: ArrayLike) -> Value:
    """rel_entr(p, q) - p + q."""
    first, second = real("kl_div", p, q)
    return _rel_entr(first, second) - first + second


@compound()
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Value:
    """(x**lmbda - 1) / lmbda, and log(x) for lmbda = 0."""
    value, power = promote_inexact("boxcox", x, lmbda)
    return _transformed(lax.log(value), power)


@compound()
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Value:
    """((1 + x)**lmbda - 1) / lmbda, and log(1 + x) for lmbda = 0."""
    value, power = promote_inexact("boxcox1p", x, lmbda)
    return _transformed(lax.log1p(value), power)


def _transformed(logarithm: Any, power: Any) -> Value:
    """(exp(power * logarithm) - 1) / power; near power = 0 also the derivative by the power is right."""
    zero = power == 0
    safe = jnp.where(zero, 1, power)
    series = logarithm + 0.5 * logarithm * logarithm * power
    result: Value = jnp.where(
        zero, jnp.where(abs(logarithm) < math.inf, series, logarithm), lax.expm1(safe * logarithm) / safe
    )
    return result

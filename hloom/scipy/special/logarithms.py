"""Logarithms of probabilities, entropies and normalisations. Names and semantics follow jax.scipy.special."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import lax
from ... import numpy as jnp
from ...extend.primitive import Primitive
from ...nn import normalization
from ...numpy.promotion import Axis, promote_inexact, strong
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .promoting import real


@compound(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Value:
    """exp(x) / sum(exp(x)) over `axis`, all axes if it is None.

    >>> special.softmax(jnp.array([0.0, 0.0, 1000.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    return normalization.softmax(x, axis=axis)


@compound(static=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Value:
    """log(softmax(x)) over `axis`, all axes if it is None.

    >>> special.log_softmax(jnp.array([0.0, 0.0, -200.0])).round(3)
    Array([  -0.693,   -0.693, -200.693], dtype=float32)
    """
    return normalization.log_softmax(x, axis=axis)


@compound()
def expit(x: ArrayLike) -> Value:
    """1 / (1 + exp(-x)), of real or complex numbers.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.expit(jnp.array([-100.0, 0.0, 2.0])).round(3)
    Array([0.   , 0.5  , 0.881], dtype=float32)
    """
    return lax.logistic(*promote_inexact("expit", x))


@compound()
def logit(x: ArrayLike) -> Value:
    """log(x / (1 - x)); infinite at 0 and 1, NaN outside for real x.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.logit(jnp.array([0.0, 0.5, 0.75])).round(3)
    Array([ -inf, 0.   , 1.099], dtype=float32)
    """
    return strong(_logit.bind(*promote_inexact("logit", x)))


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
    """x log(y), and 0 where x is 0 and y is not NaN.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 2.0])).round(3)
    Array([0.   , 1.386], dtype=float32)
    """
    result: Value = _xlogy.bind(*promote_inexact("xlogy", x, y))
    return result


_xlogy = Primitive("xlogy", lambda x, y: jnp.where((x != 0) | (y != y), x * lax.log(y), lax.full_like(x, 0)))


@_xlogy.def_jvp
def _xlogy_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, y), (s, t) = primals, tangents
    return _xlogy.bind(x, y), s * lax.log(y) + t * _quotient(x, y)


def _quotient(x: Any, y: Any) -> Any:
    """x / y, and 0 where both are 0: there x log y is 0 for all y."""
    tiny = lax.full_like(y, dtypes.finfo(y.aval.dtype).tiny)
    return x / lax.select((x == 0) & (y == 0), tiny, y)


@compound()
def xlog1py(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(1 + y), and 0 where x is 0 and y is not NaN.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 1.0])).round(3)
    Array([0.   , 1.386], dtype=float32)
    """
    result: Value = _xlog1py.bind(*promote_inexact("xlog1py", x, y))
    return result


_xlog1py = Primitive("xlog1py", lambda x, y: jnp.where((x != 0) | (y != y), x * lax.log1p(y), lax.full_like(x, 0)))


@_xlog1py.def_jvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, y), (s, t) = primals, tangents
    return _xlog1py.bind(x, y), s * lax.log1p(y) + t * _quotient(x, 1 + y)


_xlogx = Primitive("xlogx", lambda x: _xlogy.bind(x, x))


@_xlogx.def_jvp
def _xlogx_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _xlogx.bind(x), t * (lax.log(x) + 1)


@compound()
def entr(x: ArrayLike) -> Value:
    """-x log(x), 0 at 0, and -inf for x < 0.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.entr(jnp.array([0.25, 0.25, 0.5])).sum().round(3)  # an entropy
    Array(1.04, dtype=float32)
    """
    (value,) = real("entr", x)
    return lax.select(value < 0, lax.full_like(value, -math.inf), -_xlogx.bind(value))


@compound()
def rel_entr(p: ArrayLike, q: ArrayLike) -> Value:
    """p log(p / q) where both are positive, 0 for p = 0 and q >= 0, else inf.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> p, q = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.25, 0.5, 0.25])
    >>> special.rel_entr(p, q).round(3), special.rel_entr(p, q).sum().round(3)
    (Array([0.347, 0.   , 0.   ], dtype=float32), Array(0.347, dtype=float32))
    """
    return strong(_rel_entr(*real("rel_entr", p, q)))


def _log_quotient(p: Any, q: Any) -> Any:
    """log(p / q) for positive p and q, also where they are close to each other.

    It is log(1 + (larger - smaller) / smaller), or its negative. Where the quotient would overflow, it is twice the
    logarithm of the quotient of the roots, which powers of two move towards each other.
    """
    limits = dtypes.finfo(p.aval.dtype)
    power = -int(limits.minexp) // 5
    larger, smaller = lax.max(p, q), lax.min(p, q)
    is_huge = smaller < larger * (4 * float(limits.tiny))
    larger = jnp.where(is_huge, lax.sqrt(larger) * 2.0**-power, larger)
    smaller = jnp.where(is_huge, lax.sqrt(smaller) * 2.0**power, smaller)
    size = lax.log1p((larger - smaller) / smaller)
    size = jnp.where(is_huge, 2 * size + 4 * power * math.log(2), size)
    return jnp.where(p < q, -size, size)


_times_log_quotient = Primitive("times_log_quotient", lambda p, q: p * _log_quotient(p, q))


@_times_log_quotient.def_jvp
def _times_log_quotient_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (p, q), (s, t) = primals, tangents
    logarithm = _log_quotient(p, q)
    return p * logarithm, s * (logarithm + 1) - t * (p / q)


def _rel_entr(p: Any, q: Any) -> Value:
    positive = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(positive, p, 1), jnp.where(positive, q, 1)
    inside = _times_log_quotient.bind(safe_p, safe_q)
    outside = jnp.where((p == 0) & (q >= 0), 0.0, jnp.where((p != p) | (q != q), math.nan, math.inf))
    result: Value = jnp.where(positive, inside, outside)
    return jnp.where((p == math.inf) & (q > 0) & (q < math.inf), math.inf, result)


@compound()
def kl_div(p: ArrayLike, q: ArrayLike) -> Value:
    """rel_entr(p, q) - p + q.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.kl_div(jnp.array([0.0, 1.0, 2.0]), 1.0).round(3)
    Array([1.   , 0.   , 0.386], dtype=float32)
    """
    first, second = real("kl_div", p, q)
    entropy: Any = _rel_entr(first, second)
    return strong(jnp.where(entropy == math.inf, entropy, entropy - first + second))


@compound()
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Value:
    """(x**lmbda - 1) / lmbda, and log(x) for lmbda = 0.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.boxcox(jnp.array([1.0, 4.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    result: Value = _boxcox.bind(*promote_inexact("boxcox", x, lmbda))
    return result


@compound()
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Value:
    """((1 + x)**lmbda - 1) / lmbda, and log(1 + x) for lmbda = 0.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.boxcox1p(jnp.array([0.0, 3.0]), 0.5)
    Array([0., 2.], dtype=float32)
    """
    result: Value = _boxcox1p.bind(*promote_inexact("boxcox1p", x, lmbda))
    return result


def _power_transform(name: str, log: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Primitive:
    """(exp(power log(x)) - 1) / power as a primitive; its derivative by x is slope(x, power)."""

    def meaning(x: Any, power: Any) -> Any:
        logarithm = log(x)
        zero = (power == 0) | (abs(power * logarithm) < 1e-20)
        safe = jnp.where(zero, 1, power)
        return jnp.where(zero, logarithm, lax.expm1(safe * logarithm) / safe)

    primitive = Primitive(name, meaning)

    @primitive.def_jvp
    def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (x, power), (s, t) = primals, tangents
        return primitive.bind(x, power), s * slope(x, power) + t * _slope_by_power(log(x), power)

    return primitive


_SERIES = [1 / (math.factorial(k) * (k + 2)) for k in range(18)]


def _slope_by_power(logarithm: Any, power: Any) -> Any:
    """The derivative of (exp(u) - 1) / power, u = power logarithm: (u exp(u) - exp(u) + 1) / power**2.

    For |u| < 1, where that cancels, logarithm**2 times a series in u, 1/2 + u / 3 + ...
    """
    u = power * logarithm
    near = abs(u) < 1
    inner = jnp.where(near, u, 0)
    series = lax.full_like(inner, _SERIES[-1])
    for c in reversed(_SERIES[:-1]):
        series = series * inner + c
    far, over = jnp.where(near, 1, u), jnp.where(near, 1, power)
    growth = lax.exp(far)
    direct = (jnp.where(growth == 0, 0, (far - 1) * growth) + 1) / over / over
    return jnp.where(near, logarithm * logarithm * series, direct)


def _boxcox1p_slope(x: Any, power: Any) -> Any:
    return lax.exp(_xlog1py.bind(power - 1, x))


_boxcox = _power_transform("boxcox", lax.log, lambda x, power: lax.pow(x, power - 1))
_boxcox1p = _power_transform("boxcox1p", lax.log1p, _boxcox1p_slope)

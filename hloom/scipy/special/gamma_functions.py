"""The gamma function and its relatives. Names and semantics follow scipy.special, jax.scipy.special."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...extend.primitive import Primitive
from ...lax.elementwise_functions import (
    ElementwiseFunction,
    first_of,
    log1p_minus_of,
    repeat_while,
    round_to_even,
    scalar_value,
    sin_pi,
)
from ...lax.gamma_functions import LogGammaOfPositive, digamma_difference, hurwitz_zeta, log_gamma, stirling_tail
from ...lax.series import horner, narrow, powers_between
from ...lax.special_tables import LOG_GAMMA, STIRLING
from ...numpy.promotion import promote_inexact, strong
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.ops import convert
from ...tracer.settings.config import enable_x64
from .promoting import real

_FAR = 8.5


@compound()
def gammaln(x: ArrayLike) -> Value:
    """log |gamma(x)|; see `lax.lgamma`.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.gammaln(jnp.array([1.0, 5.0, 100.0])).round(2)
    Array([  0.  ,   3.18, 359.13], dtype=float32)
    """
    return lax.lgamma(*real("gammaln", x))


@compound()
def digamma(x: ArrayLike) -> Value:
    """The derivative of gammaln; see `lax.digamma`. NaN at negative integers.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.digamma(jnp.array([1.0, 2.0])).round(3)
    Array([-0.577,  0.423], dtype=float32)
    """
    return lax.digamma(*real("digamma", x))


@compound()
def gammainc(a: ArrayLike, x: ArrayLike) -> Value:
    """The regularized lower incomplete gamma function, with derivatives by both arguments; see `lax.igamma`.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.gammainc(2.0, jnp.array([0.0, 1.0, 5.0])).round(3)
    Array([0.   , 0.264, 0.96 ], dtype=float32)
    """
    return lax.igamma(*real("gammainc", a, x))


@compound()
def gammaincc(a: ArrayLike, x: ArrayLike) -> Value:
    """1 - gammainc(a, x), accurate where it is small; see `lax.igammac`.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.gammaincc(2.0, jnp.array([0.0, 1.0, 5.0])).round(3)
    Array([1.   , 0.736, 0.04 ], dtype=float32)
    """
    return lax.igammac(*real("gammaincc", a, x))


@compound()
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """The regularized incomplete beta function, with derivatives by all arguments; see `lax.betainc`.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.betainc(2.0, 2.0, jnp.array([0.0, 0.5, 1.0])).round(3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return lax.betainc(*real("betainc", a, b, x))


# ---- signs and values of the gamma function


@compound()
def gammasgn(x: ArrayLike) -> Value:
    """The sign of gamma(x): NaN for negative integers and -inf, the sign of x at zeros.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.gammasgn(jnp.array([2.5, -0.5, -1.5]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    (value,) = real("gammasgn", x)
    return strong(_sign(value))


def _sign(x: Any) -> Any:
    floor = lax.floor(x)
    odd = lax.floor(floor * 0.5) * 2.0 != floor
    negative = x < 0.0
    minus_zero = (x == 0.0) & (1.0 / x < 0.0)
    return first_of(
        (x != x) | (negative & (x == floor)), math.nan, minus_zero | (negative & odd), -1.0, lax.full_like(x, 1.0)
    )


def _gamma_meaning(x: Any) -> Any:
    """Below 8.5 exp of a small polynomial times a product, above Stirling's formula (DLMF 5.11.3); reflection (5.5.3).

    The power of Stirling's formula is the square of another one: it overflows later than gamma does.
    """
    size = lax.abs(x)
    near = lax.select(size < _FAR, size, lax.full_like(x, 2.0))
    k = lax.max(round_to_even(near - 2.0), lax.full_like(x, -2.0))
    e = near - (2.0 + k)
    series = e * powers_between(LOG_GAMMA, e, -0.5, 0.5)
    far = lax.select(size < _FAR, lax.full_like(x, _FAR), lax.min(size, lax.full_like(x, 400.0)))
    if narrow():  # the error of an exponent near 100 does not count
        stirling = (far - 0.5) * lax.log(far) - far + 0.5 * math.log(2 * math.pi) + stirling_tail(far)
        value = high = lax.exp(lax.select(size < _FAR, series, stirling))
    else:
        value = lax.exp(series)
        half = lax.pow(far, 0.5 * far - 0.25)
        high = half * lax.exp(-far) * half * (math.sqrt(2 * math.pi) * lax.exp(stirling_tail(far)))
    product = lax.full_like(x, 1.0)
    for j in range(6):
        product = lax.select(k > j, product * (2.0 + e + j), product)
    low = first_of(k < -1.5, value / (near * (1.0 + near)), k < -0.5, value / near, value * product)
    positive = lax.select(size < _FAR, low, high)
    reflected = math.pi / sin_pi(size) / (size * positive)  # gamma(1 - size) gamma(size), gamma(1 + size)
    reflected = lax.select(size < 1.0, reflected, math.pi / (size * sin_pi(size)) / positive)
    sign = _sign(x)
    return first_of(x == math.inf, math.inf, x == 0.0, 1.0 / x, x < 0.0, sign * reflected, positive)


_gamma: ElementwiseFunction = ElementwiseFunction(
    "gamma", _gamma_meaning, [lambda y, x: y * lax.digamma(x)], short=True
)


@compound()
def gamma(x: ArrayLike) -> Value:
    """The gamma function, of real or complex numbers; NaN at negative integers and -inf, infinite at zeros.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.gamma(jnp.array([5.0, 0.5, -0.5])).round(3)
    Array([24.   ,  1.772, -3.545], dtype=float32)
    """
    (value,) = promote_inexact("gamma", x)
    if dtypes.is_complex(value.aval.dtype):
        return strong(_complex_gamma.bind(value))
    return strong(_gamma(value))


@compound()
def loggamma(x: ArrayLike) -> Value:
    """The logarithm of the gamma function; NaN for real x <= 0.

    For complex x it is the branch that is real for real x > 0, cut along the negative axis.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.loggamma(jnp.array([5.0, -0.5])).round(3)
    Array([3.178,   nan], dtype=float32)
    >>> special.loggamma(jnp.array([1j])).round(3)
    Array([-0.651-1.872j], dtype=complex64)
    """
    (value,) = promote_inexact("loggamma", x)
    if dtypes.is_complex(value.aval.dtype):
        result: Value = _complex_log_gamma.bind(value)
        return result
    return jnp.where(value > 0, lax.lgamma(value), math.nan)


def _in_complex128(name: str, meaning: Any) -> Primitive:
    """A primitive on complex numbers that is computed in complex128, and differentiated through its meaning."""
    primitive = Primitive(name)

    @primitive.def_meaning
    def _(z: Any) -> Any:
        dtype, weak = z.aval.dtype, z.aval.weak_type
        with enable_x64(True):
            result = meaning(convert(z, dtypes.complex128, False))
        return convert(result, dtype, weak)

    return primitive


def _log_gamma_of(z: Any) -> Any:
    """Stirling's series after eight steps to the right (DLMF 5.11.1, 5.5.1); left of 0 by reflection (5.5.3).

    In the upper half-plane, log sin(pi z) = log(1 - exp(2 pi i z)) - i pi z + i pi / 2 - log 2 is analytic, and so is
    the sum; below it is the conjugate.
    """
    x, y = lax.real(z), lax.imag(z)
    below = (y < 0.0) | ((y == 0.0) & (1.0 / y < 0.0))
    upper = lax.complex(x, lax.abs(y))
    left = x < 0.5
    right = lax.select(left, 1.0 - upper, upper)
    shifted = right + 8.0
    w = 1.0 / (shifted * shifted)
    tail = horner(STIRLING, w) / shifted
    stirling = (shifted - 0.5) * lax.log(shifted) - shifted + 0.5 * math.log(2 * math.pi) + tail
    for k in range(8):
        stirling = stirling - lax.log(right + float(k))
    reduced = lax.complex(x - round_to_even(x), lax.abs(y))
    sine = lax.log(1.0 - lax.exp(2j * math.pi * reduced)) - 1j * math.pi * upper + (0.5j * math.pi - math.log(2))
    value = lax.select(left, math.log(math.pi) - sine - stirling, stirling)
    value = lax.select(below, lax.conj(value), value)
    pole = (y == 0.0) & (x <= 0.0) & (x == lax.floor(x))
    return lax.select(pole, lax.full_like(value, complex(math.nan, math.nan)), value)


def _gamma_of(z: Any) -> Any:
    return lax.exp(_log_gamma_of(z))


_complex_log_gamma = _in_complex128("complex_loggamma", _log_gamma_of)
_complex_gamma = _in_complex128("complex_gamma", _gamma_of)


# ---- beta, binomial coefficients, factorials


def _is_pole(x: Any) -> Any:
    """Where gamma is infinite: at 0, -1, -2, ..."""
    return (x <= 0.0) & (x == lax.floor(x))


def _is_finite_at_pole(p: Any, q: Any) -> Any:
    """Where gamma(p) and gamma(p + q) are both infinite, and q is a positive integer: their quotient has a limit,
    (-1)**q gamma(1 - p - q) / gamma(1 - p)."""
    return _is_pole(p) & _is_pole(p + q) & (q > 0.0) & (q == lax.floor(q))


def _log_beta_meaning(a: Any, b: Any) -> Any:
    """Left of 0 by reflection (DLMF 5.5.3) from positive arguments.

    For p < 0 < q, B(p, q) = B(1 - p - q, q) sin(pi (p + q)) / sin(pi p) for p + q <= 0, else
    -pi / (p sin(pi p) B(-p, p + q)); for p, q < 0,
    pi sin(pi (p + q)) / (sin(pi p) sin(pi q) (1 - p - q) B(1 - p, 1 - q)).
    """
    p, q = lax.min(a, b), lax.max(a, b)
    one = lax.full_like(p, 1.0)
    mixed, both = (p < 0.0) & (q > 0.0), q < 0.0
    left, right = mixed & (p + q <= 0.0), mixed & (p + q > 0.0)
    first = first_of(left, 1.0 - p - q, right, -p, both, 1.0 - p, p > 0.0, p, one)
    second = first_of(right, p + q, both, 1.0 - q, q > 0.0, q, one)
    finite = _is_finite_at_pole(p, q)
    sine, other = lax.abs(sin_pi(p)), lax.abs(sin_pi(p + q))
    usual = log_beta_of_positive(first, second)
    turn = first_of(
        left & finite, 1.0, left, other / sine, right, math.pi / (sine * -p),
        math.pi * (other / sine) / lax.abs(sin_pi(q)) / (1.0 - p - q),
    )  # fmt: skip
    reflected = lax.log(turn)
    return first_of(
        (a != a) | (b != b), math.nan,
        (p < 0.0) & (p > -math.inf) & (q == math.inf), math.inf,
        (_is_pole(p) | _is_pole(q)) & ~finite & (q < math.inf), math.inf,
        p > 0.0, usual,
        left, usual + reflected,
        reflected - usual,
    )  # fmt: skip


def log_beta_of_positive(a: Any, b: Any) -> Any:
    """Above 8.5 by Stirling's formula, with logarithms of quotients: nothing large cancels.

    Each of the three logarithms is of the number that the sizes of a and b ask for.
    """
    p, q = lax.min(a, b), lax.max(a, b)
    usable = p > 0.0
    lower, upper, total = (LogGammaOfPositive(lax.select(usable, v, lax.full_like(v, 1.0))) for v in (p, q, p + q))
    both, one = p >= _FAR, (q >= _FAR) & usable
    share = lower.x / upper.far
    first = lax.log(lax.select(both, lower.far / (lower.far + upper.far), lower.piece))
    second, third = lax.log(upper.piece), lax.log(total.piece)
    rise = lax.log1p(share)
    errors = upper.tail - total.tail
    by_stirling = (
        (0.5 * math.log(2 * math.pi) - 0.5 * second)
        + (lower.far - 0.5) * first
        - upper.far * rise
        + (lower.tail + errors)
    )
    low = lower.value(first)
    mixed = low - upper.far * log1p_minus_of(share, rise) + 0.5 * rise - lower.x * third + errors
    direct = low + upper.value(second) - total.value(third)
    return first_of(
        (a != a) | (b != b) | ~(p >= 0.0), math.nan,
        (q == math.inf) & usable, -math.inf,
        ~usable, math.inf,
        both, by_stirling,
        one, mixed,
        direct,
    )  # fmt: skip


_log_beta: ElementwiseFunction = ElementwiseFunction(
    "betaln",
    _log_beta_meaning,
    [
        lambda y, a, b: digamma_difference(a, b),
        lambda y, a, b: digamma_difference(b, a),
    ],
)


@compound()
def betaln(a: ArrayLike, b: ArrayLike) -> Value:
    """log |beta(a, b)|, also where a and b are large.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.betaln(2.0, jnp.array([1.0, 3.0])).round(3)
    Array([-0.693, -2.485], dtype=float32)
    """
    return _log_beta(*real("betaln", a, b))


def _beta_meaning(a: Any, b: Any) -> Any:
    """0 at the poles of gamma(a + b) alone; at the poles of gamma(a) or gamma(b) infinite, as in SciPy, or the
    limit."""
    size = lax.exp(_log_beta_meaning(a, b))
    p, q = lax.min(a, b), lax.max(a, b)
    is_odd = lax.rem(lax.floor(q), lax.full_like(q, 2.0)) != 0.0
    alternating = lax.select(is_odd, lax.full_like(q, -1.0), lax.full_like(q, 1.0))
    usual = _sign(a) * _sign(b) * _sign(a + b) * size
    infinite = lax.full_like(size, math.inf)
    return first_of(
        _is_finite_at_pole(p, q),
        alternating * size,
        (a < 0.0) & _is_pole(a) & _is_pole(b),
        alternating * infinite,
        ((a < 0.0) & _is_pole(a)) | ((b < 0.0) & _is_pole(b)),
        infinite,
        _is_pole(a + b) & (a != 0.0) & (b != 0.0),
        _sign(a) * _sign(b) * 0.0,
        usual,
    )


def _slope_at_zero_of_beta(a: Any, b: Any) -> Any:
    """Gamma(a) Gamma(b) (-1)**n n! where a + b = -n: the derivative of beta where gamma(a + b) alone has a pole."""
    at_zero = _is_zero_of_beta(a, b)

    def found(state: Any) -> Any:
        order = -(a + b)
        is_odd = lax.floor(0.5 * order) * 2.0 != order
        size = lax.exp(log_gamma(a) + log_gamma(b) + log_gamma(1.0 + order))
        return state[0] + 1.0, _sign(a) * _sign(b) * lax.select(is_odd, -size, size)

    start = (scalar_value(0.0), lax.full_like(a, 0.0))
    return repeat_while(lambda state: at_zero, found, start, 1, 1)[1]


def _is_zero_of_beta(a: Any, b: Any) -> Any:
    return _is_pole(a + b) & ~_is_pole(a) & ~_is_pole(b)


_beta_slope_at_zero: ElementwiseFunction = ElementwiseFunction("beta_slope", _slope_at_zero_of_beta, [None, None])


def _beta_slope(y: Any, a: Any, b: Any) -> Any:
    """The derivative by a."""
    return lax.select(_is_zero_of_beta(a, b), _beta_slope_at_zero(a, b), y * digamma_difference(a, b))


_beta: ElementwiseFunction = ElementwiseFunction(
    "beta",
    _beta_meaning,
    [
        lambda y, a, b: _beta_slope(y, a, b),
        lambda y, a, b: _beta_slope(y, b, a),
    ],
)


@compound()
def beta(a: ArrayLike, b: ArrayLike) -> Value:
    """gamma(a) gamma(b) / gamma(a + b); where that is a quotient of infinities its limit, and infinite at other poles.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.beta(2.0, jnp.array([1.0, 3.0])).round(4)
    Array([0.5   , 0.0833], dtype=float32)
    """
    return strong(_beta(*real("beta", a, b)))


_factorial: ElementwiseFunction = ElementwiseFunction(
    "factorial",
    lambda n: lax.select(n < 0.0, lax.full_like(n, 0.0), _gamma_meaning(n + 1.0)),
    [lambda y, n: lax.select(n < 0.0, y, y * lax.digamma(lax.select(n < 0.0, lax.full_like(n, 1.0), n + 1.0)))],
    short=True,
)


@compound(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Value:
    """gamma(n + 1), and 0 for n < 0.

    exact: integers of any size are no arrays; math.factorial has them. NotImplementedError, as in JAX.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.factorial(jnp.arange(5)).round(3)
    Array([ 1.,  1.,  2.,  6., 24.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial with exact=True: math.factorial gives integers of any size")
    return _factorial(*real("factorial", n))


def _comb_meaning(n: Any, k: Any) -> Any:
    """1 / ((n + 1) B(n - k + 1, k + 1)), and the nearest integer of that for integers below 2**52."""
    inside = (k <= n) & (n >= 0.0) & (k >= 0.0)
    n, k = (lax.select(inside, v, lax.full_like(v, 0.0)) for v in (n, k))
    exponent = -log_beta_of_positive(n - k + 1.0, k + 1.0)
    value = lax.exp(exponent) / (n + 1.0)
    value = lax.select(exponent > 700.0, lax.exp(exponent - lax.log(n + 1.0)), value)
    value = lax.select((n == math.inf) & (k < math.inf), lax.select(k == 0.0, lax.full_like(n, 1.0), n), value)
    whole = (n == lax.floor(n)) & (k == lax.floor(k)) & (value < 1e12)
    value = lax.select(whole, round_to_even(value), value)
    return lax.select(inside, value, lax.full_like(value, 0.0))


def _comb_by_n(y: Any, n: Any, k: Any) -> Any:
    return y * digamma_difference(n + 1.0, -k)


def _comb_by_k(y: Any, n: Any, k: Any) -> Any:
    smaller, gap = lax.min(k, n - k), n - 2.0 * k
    return -y * lax.sign(gap) * digamma_difference(smaller + 1.0, lax.abs(gap))


_comb: ElementwiseFunction = ElementwiseFunction("comb", _comb_meaning, [_comb_by_n, _comb_by_k])


@compound(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Value:
    """How many choices of k things out of N there are, in floating point; 0 unless 0 <= k <= N.

    repetition: things may be chosen more than once.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.comb(5, jnp.arange(6)).round(3)
    Array([ 1.,  5., 10., 10.,  5.,  1.], dtype=float32)
    >>> special.comb(5, 2, repetition=True).round(3)
    Array(15., dtype=float32, weak_type=True)
    """
    number, chosen = real("comb", N, k)
    if repetition:
        result: Value = jnp.where((chosen == 0) & (number >= 0), 1.0, _comb(number + chosen - 1, chosen))
    else:
        result = _comb(number, chosen)
    return result


def multigammaln(a: ArrayLike, d: ArrayLike) -> Value:
    """The logarithm of the multivariate gamma function of dimension d, an integer that is not traced.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.multigammaln(jnp.array([2.0, 3.0]), 2).round(3)
    Array([0.452, 1.55 ], dtype=float32)
    """
    return _multigammaln(a, operator.index(d))  # type: ignore[arg-type]


@compound(static=("d",))
def _multigammaln(a: ArrayLike, d: int) -> Value:
    (value,) = real("multigammaln", a)
    terms = lax.lgamma(value[..., None] - np.arange(d, dtype=value.dtype) / np.asarray(2, value.dtype))
    return strong(terms.sum(-1) + 0.25 * d * (d - 1) * math.log(math.pi))


def _poch_meaning(z: Any, m: Any) -> Any:
    """By logarithms; Stirling's formula gives their difference without cancellation; a product for small integers m.

    If gamma(z) and gamma(z + m) are both infinite, m is an integer, and the quotient has a limit,
    (-1)**m gamma(1 - z) / gamma(1 - z - m). If one of them is, it is 0 or infinite.
    """
    product = lax.full_like(z, 1.0)
    whole = m == lax.floor(m)
    few = whole & (lax.abs(m) <= 12.0)
    start = lax.select(m < 0.0, z + m, z)
    for j in range(12):
        product = lax.select(lax.abs(m) > j, product * (start + float(j)), product)
    product = lax.select(m < 0.0, 1.0 / product, product)
    before, after = _is_pole(z), _is_pole(z + m)
    mirrored = before & after & whole
    odd = lax.floor(m * 0.5) * 2.0 != m
    sign = lax.select(odd, lax.full_like(z, -1.0), lax.full_like(z, 1.0))
    usual = _gamma_quotient(lax.select(mirrored, 1.0 - z, z), lax.select(mirrored, -m, m))
    return first_of(
        few, product, mirrored, sign / usual, before & (m == m) & (m < math.inf), 0.0, after, math.inf, usual
    )


def _gamma_quotient(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z)."""
    after = z + m
    large = (z >= _FAR) & (after >= _FAR)
    base = lax.select(large, z, lax.full_like(z, 10.0))
    step = lax.select(large, m, lax.full_like(z, 1.0))
    end = base + step
    share = step / base
    far = (base - 0.5) * lax.log1p(share) + step * (lax.log(end) - 1.0) + stirling_tail(end) - stirling_tail(base)
    quotient = _sign(after) * _sign(z) * lax.exp(log_gamma(after) - log_gamma(z))
    near = (lax.abs(z) < 25.0) & (lax.abs(after) < 25.0)
    plain = _gamma_meaning(after) / _gamma_meaning(z)
    return first_of(large, lax.exp(far), near, plain, quotient)


# a sum that is rounded to a narrower type is another number, near a pole a very different one
_digamma_of_sum: ElementwiseFunction = ElementwiseFunction(
    "digamma_of_sum", lambda z, m: lax.digamma(z + m), [lambda y, z, m: lax.polygamma(1.0, z + m)] * 2
)
_poch: ElementwiseFunction = ElementwiseFunction(
    "poch",
    _poch_meaning,
    [
        lambda y, z, m: -y * digamma_difference(z, m),
        lambda y, z, m: y * _digamma_of_sum(z, m),
    ],
)


@compound()
def poch(z: ArrayLike, m: ArrayLike) -> Value:
    """Pochhammer's symbol gamma(z + m) / gamma(z): z (z + 1) ... (z + m - 1) for integers m.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.poch(jnp.array([1.0, 2.0]), 3.0).round(3)
    Array([ 6., 24.], dtype=float32)
    """
    return strong(_poch(*real("poch", z, m)))


# ---- zeta and its relatives


@compound()
def polygamma(n: ArrayLike, x: ArrayLike) -> Value:
    """The derivative of order n, an integer, of `digamma`; n = 0 is digamma itself.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.polygamma(1, jnp.array([1.0, 2.0])).round(3)
    Array([1.645, 0.645], dtype=float32)
    """
    if not jnp.issubdtype(jnp.result_type(n), np.integer):
        raise ValueError(
            f"Argument `n` to polygamma must be of integer type. Got dtype {jnp.result_type(n).name}: "
            "there are derivatives of order 0, 1, 2, ..."
        )
    return lax.polygamma(*real("polygamma", n, x))


def _riemann_meaning(s: Any) -> Any:
    """Left of -1/2 by reflection (DLMF 25.4.1), right of 1 by Euler's and Maclaurin's formula."""
    one = lax.full_like(s, 1.0)
    right = lax.select(s < -0.5, 1.0 - s, s)
    upper = hurwitz_zeta(lax.select(right < 1.0, one + one, right), one)
    middle = lax.select(right < 1.0, right, lax.full_like(s, 0.5))
    # (1 - 2**(1 - s)) zeta(s) is the alternating sum, by Borwein's algorithm 2 (1991)
    alternating = lax.full_like(s, 0.0)
    for k, weight in enumerate(_BORWEIN):
        alternating = alternating + weight * lax.pow(one * float(k + 1), -middle)
    lower = alternating / -lax.expm1((1.0 - middle) * math.log(2.0))
    value = lax.select(right < 1.0, lower, upper)
    sine = lax.sin(0.5 * math.pi * (s - 4.0 * round_to_even(s * 0.25)))
    sine = lax.select(lax.floor(s * 0.5) * 2.0 == s, lax.full_like(s, 0.0), sine)
    power = (s - 1.0) * math.log(2 * math.pi)
    scale = lax.exp(power) * _gamma_meaning(right)
    scale = lax.select(right < 100.0, scale, lax.exp(power + log_gamma(right)))
    reflected = lax.select(sine == 0.0, sine, 2.0 * scale * sine * value)
    return first_of(s == 1.0, math.inf, s == -math.inf, math.nan, s < -0.5, reflected, value)


def _borwein(count: int) -> list[float]:
    """The weights of 1**-s, -2**-s, ...: exact integers over one denominator."""
    total, sums = 0, []
    for i in range(count + 1):
        total += count * math.factorial(count + i - 1) * 4**i // (math.factorial(count - i) * math.factorial(2 * i))
        sums.append(total)
    return [(-1) ** k * (sums[count] - sums[k]) / sums[count] for k in range(count)]


_BORWEIN = _borwein(24)
_riemann: ElementwiseFunction = ElementwiseFunction("riemann_zeta", _riemann_meaning, [None])


@compound()
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Value:
    """Hurwitz's zeta function, the sum of (q + k)**-x; see `lax.zeta`. Without q, Riemann's, for all real x.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.zeta(jnp.array([2.0, 4.0]), 1.0).round(3)
    Array([1.645, 1.082], dtype=float32)
    """
    return _riemann(*real("zeta", x)) if q is None else lax.zeta(*real("zeta", x, q))


def bernoulli(n: int) -> Value:
    """The Bernoulli numbers B0 ... Bn, where B1 is -1/2.

    >>> special.bernoulli(4).round(4)
    Array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333], dtype=float32)
    """
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, not {count}")
    values = np.zeros(count + 1)
    values[:2] = [1.0, -0.5][: count + 1]
    size = 2.0  # 2 k! / (2 pi)**k
    for k in range(1, count + 1):
        size *= k / (2 * math.pi)
        if k % 2 == 0 and k > 1:
            values[k] = (1 if k % 4 else -1) * size * math.fsum(j**-k for j in range(1, 40 if k > 8 else 4000))
    for k, exact in zip((2, 4, 6, 8), (1 / 6, -1 / 30, 1 / 42, -1 / 30)):
        if k <= count:
            values[k] = exact
    return jnp.asarray(values, dtypes.canonical_dtype(float))

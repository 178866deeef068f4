"""The logarithm of the gamma function and its derivatives. Source of names and arguments: jax.lax."""

from __future__ import annotations

import math
from typing import Any

from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import UnsupportedError
from .elementwise import pow
from .elementwise_functions import (
    ElementwiseFunction,
    first_of,
    repeat_while,
    round_to_even,
    scalar_value,
    sin_pi,
)
from .instructions import abs, cos, exp, expm1, floor, log, log1p, max, select, sin
from .movement import full_like
from .series import horner, narrow, powers_between
from .special_tables import DIGAMMA, DIGAMMA_ROOT, DIGAMMA_TAIL, LOG_GAMMA, STIRLING, ZETA_TAIL

_FAR = 8.5
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


# ---- log |Gamma(x)|


class LogGammaOfPositive:
    """log Gamma(x) for x > 0, but for one logarithm, so that a caller can share it.

    Below 8.5, x = 2 + e + k with an integer k and |e| <= 1/2: the polynomial e p(e) has the roots of the function, and
    the logarithm of a product of up to six numbers leads from 2 + e to x. Above, Stirling's series (DLMF 5.11.1).
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        near = select(x < _FAR, x, full_like(x, 2.0))
        self.k = max(round_to_even(near - 2.0), full_like(x, -2.0))
        self.e = near - (2.0 + self.k)
        product = full_like(x, 1.0)
        for j in range(6):
            product = select(self.k > j, product * (2.0 + self.e + j), product)
        down = select(self.k < -1.5, near * (1.0 + near), near)
        self.far = select(x < _FAR, full_like(x, _FAR), x)
        self.piece = first_of(x >= _FAR, self.far, self.k < -0.5, down, product)
        """the number whose logarithm `value` needs; x itself from 8.5 on"""
        self.tail = stirling_tail(self.far)

    def value(self, logarithm: Any) -> Any:
        x, e = self.x, self.e
        low = e * powers_between(LOG_GAMMA, e, -0.5, 0.5) + select(self.k < -0.5, -logarithm, logarithm)
        high = (self.far - 0.5) * (logarithm - 1.0) + (_HALF_LOG_TWO_PI - 0.5) + self.tail
        return first_of(x == 0.0, math.inf, x < _FAR, low, x == math.inf, math.inf, high)


def log_gamma_positive(x: Any) -> Any:
    """log Gamma(x) for x > 0."""
    parts = LogGammaOfPositive(x)
    return parts.value(log(parts.piece))


def stirling_tail(x: Any) -> Any:
    """The remainder of Stirling's formula: log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, for x >= 8.5."""
    return powers_between(STIRLING, 1.0 / (x * x), 0.0, _FAR**-2) / x


def stirling_error(x: Any) -> Any:
    """The same for all x > 0."""
    far = select(x < _FAR, full_like(x, _FAR), x)
    near = select(x < _FAR, x, full_like(x, 1.0))
    low = log_gamma_positive(near) - (near - 0.5) * log(near) + near - _HALF_LOG_TWO_PI
    return select(x < _FAR, low, stirling_tail(far))


def log_gamma_one_plus(a: Any) -> Any:
    """log Gamma(1 + a), for a >= 0, accurate near 0."""
    small = select(a < 0.5, a, full_like(a, 0.25))
    return select(a < 0.5, small * horner(LOG_GAMMA, small) - log1p(small), log_gamma_positive(1.0 + a))


def log_gamma(x: Any) -> Any:
    """log |Gamma(x)|; below 0 by reflection (DLMF 5.5.3)."""
    size = abs(x)
    positive = log_gamma_positive(size)
    sine = sin_pi(size)
    # the product of two values of a narrow type stays within float64
    reflected = (log(math.pi / (sine * size)) if narrow() else log(math.pi / sine) - log(size)) - positive
    pole = (x <= 0.0) & (size == floor(size))
    return first_of(pole, math.inf, x < 0.0, reflected, positive)


_lgamma: ElementwiseFunction = ElementwiseFunction("lgamma", log_gamma, [lambda y, x: _digamma(x)], short=True)


@compound()
def lgamma(x: ArrayLike) -> Value:
    """log |Gamma(x)|; inf at 0, at negative integers and at both infinities.

    The error is below 4 ulp for x > 0. For x < 0 it is relative to the larger of the result and 1.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> jnp.exp(lax.lgamma(jnp.array([5.0, 6.0]))).round(3)  # 4!, 5!
    Array([ 24., 120.], dtype=float32)
    """
    return _lgamma(x)


# ---- digamma


def digamma_positive(x: Any) -> Any:
    """The derivative of log Gamma(x) for x > 0.

    Below 8.5, x = y + k with y in [1, 2] and an integer k: (y - root) p(y), and up to seven reciprocals lead from y to
    x. Above, the asymptotic series (DLMF 5.11.2).
    """
    near = select(x < _FAR, x, full_like(x, 1.5))
    k = max(floor(near - 1.0), full_like(x, -1.0))
    y = near - k
    low = ((y - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1]) * powers_between(DIGAMMA, y - 1.5, -0.5, 0.5)
    low = select(k < -0.5, low - 1.0 / near, low)
    for j in range(7):
        low = select(k > j, low + 1.0 / (y + j), low)
    far = select(x < _FAR, full_like(x, _FAR), x)
    return select(x < _FAR, low, log(far) + digamma_minus_log(far))


def digamma_minus_log(x: Any) -> Any:
    """digamma(x) - log(x) for x >= 8.5."""
    z = 1.0 / (x * x)
    return -0.5 / x - z * powers_between(DIGAMMA_TAIL, z, 0.0, _FAR**-2)


def _digamma_meaning(x: Any) -> Any:
    size = abs(x)
    positive = digamma_positive(size)
    r = math.pi * (size - round_to_even(size))
    reflected = positive + 1.0 / size + math.pi * cos(r) / sin(r)  # DLMF 5.5.4
    pole = (x <= 0.0) & (size == floor(size))
    return first_of(x == 0.0, -1.0 / x, pole, math.nan, x < 0.0, reflected, positive)


_digamma: ElementwiseFunction = ElementwiseFunction(
    "digamma", _digamma_meaning, [lambda y, x: _trigamma(x)], short=True
)


_TRIGAMMA_STEPS = 9
_TRIGAMMA_TAIL = [2.0 * (k + 1) * c for k, c in enumerate(DIGAMMA_TAIL)]
"""B(2), B(4), ... of DLMF 5.15.8"""


def _trigamma_meaning(x: Any) -> Any:
    """The derivative of digamma: the asymptotic series (DLMF 5.15.8), below 9 after nine steps to the right (5.15.5);
    left of 0 by reflection (5.15.6)."""
    pole = (x <= 0.0) & (x == floor(x))
    positive = select(x < 0.0, 1.0 - x, x)
    near = select(positive < _TRIGAMMA_STEPS, select(pole, full_like(x, 1.0), positive), full_like(x, 1.0))
    total = full_like(x, 0.0)
    for k in reversed(range(_TRIGAMMA_STEPS)):
        inverse = 1.0 / (near + float(k))
        total = total + inverse * inverse
    far = select(positive < _TRIGAMMA_STEPS, near + float(_TRIGAMMA_STEPS), positive)
    inverse = 1.0 / far
    z = inverse * inverse
    tail = inverse + z * (0.5 + inverse * powers_between(_TRIGAMMA_TAIL, z, 0.0, _TRIGAMMA_STEPS**-2))
    value = select(positive < _TRIGAMMA_STEPS, total + tail, tail)
    sine = sin_pi(x) * (1.0 / math.pi)
    return first_of(x != x, math.nan, pole, math.inf, x < 0.0, 1.0 / (sine * sine) - value, value)


_trigamma: ElementwiseFunction = ElementwiseFunction(
    "trigamma", _trigamma_meaning, [lambda y, x: _polygamma(full_like(x, 2.0), x)], short=True
)


@compound()
def digamma(x: ArrayLike) -> Value:
    """The derivative of `lgamma`; -inf at 0 and inf at -0, NaN at negative integers and at -inf.

    The error is below 4 ulp for x > 0, also near the root at 1.46; for x < 0 it is relative to the larger of the
    result and 1.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> -lax.digamma(jnp.array([1.0])).round(4)  # Euler's constant
    Array([0.5772], dtype=float32)
    """
    return _digamma(x)


# ---- digamma(a) - digamma(a + b)


_STEPS = 9


def digamma_difference_of_positive(a: Any, b: Any) -> Any:
    """digamma(a) - digamma(a + b) for a > 0 and a + b > 0, where the two may be close to each other.

    Nine steps to the right (DLMF 5.5.2), then the asymptotic series (5.11.2): each term is b times something.
    """
    end = a + b
    total = full_like(a, 0.0)
    for k in range(_STEPS):
        total = total - b / (a + float(k)) / (end + float(k))
    x, y = a + float(_STEPS), end + float(_STEPS)
    step = b / x
    u, v = 1.0 / (x * x), 1.0 / (y * y)
    # z h(z) at u less that at v is (u - v) times its divided difference
    value, quotient = full_like(a, 0.0), full_like(a, 0.0)
    for c in reversed((0.0, *DIGAMMA_TAIL)):
        quotient = quotient * v + value
        value = value * u + c
    apart = -step * ((x + y) / y) / (x * y)  # v - u, without the squares that overflow
    logarithm = select(abs(step) < 0.5, log1p(select(abs(step) < 0.5, step, full_like(a, 0.0))), log(y / x))
    series = -logarithm - 0.5 * step / y + apart * quotient
    return select(end == math.inf, full_like(a, -math.inf), total + series)


def _digamma_difference_meaning(a: Any, b: Any) -> Any:
    """digamma(a) - digamma(a + b), without cancellation where b is small or a is large.

    Left of 0 by reflection (DLMF 5.5.4); where both have a pole, the limit for an integer b.
    """
    end = a + b
    # near 0 a value that is positive is reflected with a negative one: both have the pole
    first_left, second_left = (a < 0.0) | ((end < 0.0) & (a < 0.5)), (end < 0.0) | ((a < 0.0) & (end < 0.5))
    first = select(first_left, 1.0 - a, a)
    step = first_of(first_left & second_left, -b, first_left, (end - 1.0) + a, second_left, (1.0 - end) - a, b)
    difference = digamma_difference_of_positive(first, step)
    # cot(pi a) - cot(pi (a + b)) from the fractional parts
    a_rest, b_rest = a - round_to_even(a), b - round_to_even(b)
    turn = a_rest + b_rest
    end_rest = turn - round_to_even(turn)
    sign = select(abs(turn) > 0.5, full_like(a, -1.0), full_like(a, 1.0))
    both_poles = (a_rest == 0.0) & (b_rest == 0.0)
    a_sine, b_sine, end_sine = (sin(math.pi * v) for v in (a_rest, b_rest, end_rest))
    first_cot, second_cot = cos(math.pi * a_rest) / a_sine, cos(math.pi * end_rest) / end_sine
    both = select(b_rest == 0.0, full_like(a, 0.0), sign * b_sine / (a_sine * end_sine))
    zero = full_like(a, 0.0)
    cotangents = first_of(first_left & second_left, both, first_left, first_cot, second_left, -second_cot, zero)
    pole = ((a_rest == 0.0) & first_left) | ((end_rest == 0.0) & second_left)
    usual = difference - math.pi * cotangents
    return first_of((a != a) | (b != b), math.nan, pole & ~(both_poles & first_left & second_left), math.nan, usual)


digamma_difference: ElementwiseFunction = ElementwiseFunction(
    "digamma_difference",
    _digamma_difference_meaning,
    [
        lambda y, a, b: _trigamma(a) - _trigamma(a + b),
        lambda y, a, b: -_trigamma(a + b),
    ],
)


# ---- the Hurwitz zeta function


_DIRECT = 10
"""The terms that are summed one by one before the Euler-Maclaurin formula takes over."""


def hurwitz_zeta(s: Any, q: Any) -> Any:
    """sum((q + k)**-s) by Euler and Maclaurin (DLMF 25.11.28), as in Cephes' zeta.

    For q < 0 the terms on the left of 0, and as many on the right, come first, in a loop, in pairs; powers of negative
    numbers exist for integers s only.
    """
    negative = q < 0.0
    shift = select(negative, -floor(q), full_like(q, 0.0))
    usable = negative & (q > -1e6) & (floor(q) != q) & (floor(s) == s)
    odd = floor(s * 0.5) * 2.0 != s

    first_left, first_right = (select(usable, v, full_like(q, 0.5)) for v in ((1.0 - shift) - q, q + shift))

    def step(state: Any) -> Any:
        """Adds the terms at distance k + first_left on the left of 0 and k + first_right on its right: for odd s they
        cancel, and their difference is the difference of the distances times something."""
        k, total = state
        left, right = k + first_left, k + first_right
        power = pow(left, -s)
        apart = (first_right - first_left) / left
        pair = select(odd, power * expm1(-s * log1p(apart)), power + pow(right, -s))
        return k + 1.0, select(usable & (k < shift), total + pair, total)

    start = (scalar_value(0.0), full_like(q, 0.0))
    _, below = repeat_while(lambda state: usable & (state[0] < shift), step, start, 1_000_000, 1)
    base = q + shift + shift
    total = full_like(q, 0.0)
    for k in reversed(range(_DIRECT)):
        total = pow(base + float(k), -s) + total
    w = base + float(_DIRECT)
    lead = pow(w, 1.0 - s)
    last = lead / w
    factor = s / w
    tail = full_like(q, 0.0)
    for k, c in enumerate(ZETA_TAIL):
        tail = tail + c * factor
        factor = factor * ((s + (2 * k + 1)) / w) * ((s + (2 * k + 2)) / w)
    end = lead / (s - 1.0) + select(last == 0.0, full_like(q, 0.0), last * (0.5 + tail))
    total = total + end
    infinite = (s == 1.0) | ((q <= 0.0) & (floor(q) == q))
    return first_of(
        (s != s) | (q != q) | (s < 1.0),
        math.nan,
        infinite,
        math.inf,
        negative & (floor(s) != s),
        math.nan,
        negative & (q <= -1e6),
        math.nan,
        (q == math.inf) | ((s == math.inf) & (q > 1.0)),
        0.0,
        (s == math.inf) & (q == 1.0),
        1.0,
        s == math.inf,
        math.inf,
        below + total,
    )


_zeta: ElementwiseFunction = ElementwiseFunction("zeta", hurwitz_zeta, [None, lambda y, s, q: -s * _zeta(s + 1.0, q)])


@compound()
def zeta(x: ArrayLike, q: ArrayLike) -> Value:
    """Hurwitz's zeta function: the sum of (q + k)**-x for k = 0, 1, ...

    inf for x = 1 and for q = 0, -1, ...; NaN for x < 1, for q < 0 unless x is an integer, and for q <= -1,000,000.

    Element by element, of two floating-point arrays of one dtype; a scalar, or a size of 1, meets any size.

    >>> jnp.round(lax.zeta(jnp.array([2.0, 4.0]), 1.0), 3)
    Array([1.645, 1.082], dtype=float32)
    """
    return _zeta(x, q)


# ---- polygamma


def _polygamma_meaning(m: Any, x: Any) -> Any:
    order = m + 1.0
    sign = select(floor(m * 0.5) * 2.0 == m, full_like(m, -1.0), full_like(m, 1.0))
    scaled = sign * (exp(log_gamma_positive(order)) * hurwitz_zeta(order, x))
    valid = (m >= 0.0) & (floor(m) == m)
    return first_of(~valid, math.nan, m == 0.0, _digamma_meaning(x), scaled)


def _no_order_derivative(y: Any, m: Any, x: Any) -> Any:
    raise UnsupportedError(
        "polygamma has no derivative with respect to m, which is an integer\n  Differentiate with respect to x, or "
        "use stop_gradient(m)."
    )


_polygamma: ElementwiseFunction = ElementwiseFunction(
    "polygamma", _polygamma_meaning, [_no_order_derivative, lambda y, m, x: _polygamma(m + 1.0, x)]
)


@compound()
def polygamma(m: ArrayLike, x: ArrayLike) -> Value:
    """The derivative of order m of `digamma`, for m = 0, 1, ... given as floats; NaN for other m.

    Element by element, of two floating-point arrays of one dtype; a scalar, or a size of 1, meets any size.

    >>> jnp.round(lax.polygamma(1.0, jnp.array([1.0, 2.0])), 3)
    Array([1.645, 0.645], dtype=float32)
    """
    return _polygamma(m, x)

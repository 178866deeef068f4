"""Hypergeometric functions of real numbers. Names follow scipy.special, jax.scipy.special."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ... import lax
from ...lax.elementwise_functions import ElementwiseFunction, first_of, repeat_while, scalar_value
from ...lax.gamma_functions import log_gamma
from ...numpy.promotion import strong
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.control_flow.branches import while_loop
from ...tracer.core import Value
from .gamma_functions import _sign as sign_of_gamma
from .promoting import real

_EPSILON = 2.0**-54


def _is_pole(x: Any) -> Any:
    """Whether x is 0 or a negative integer."""
    return (x <= 0.0) & (x == lax.floor(x))


def _series(
    above: list[Any], below: list[Any], x: Any, active: Any, bounds: list[Any] | None = None
) -> tuple[Any, Any]:
    """The sum of products of (above + j) x / ((below + j) (j + 1)), and x times its derivative.

    It ends when terms no longer count and fall. With `bounds`, products of `bounds` in the place of `above` decide, for
    derivatives by a parameter of `above`: a finite sum has a derivative by such a parameter that is an infinite sum.
    """

    def ratio(k: Any, up: list[Any], down: list[Any]) -> Any:
        r = x / (k + 1.0)
        for a in up:
            r = r * (a + k)
        for b in down:
            r = r / (b + k)
        return r

    whole = bounds is None
    beyond = above if bounds is None else bounds

    def going(state: Any) -> Any:
        k, _, bound, total, _ = state
        small = lax.abs(bound) * (k + 1.0) < lax.abs(total) * _EPSILON
        falling = lax.abs(ratio(k, [lax.abs(a) for a in beyond], below)) < 0.99
        return active & ~(small & falling) & (bound != 0.0) & (lax.abs(total) < math.inf)

    def step(state: Any) -> Any:
        k, term, bound, total, slope = state
        term = term * ratio(k, above, below)
        bound = term if whole else bound * ratio(k, beyond, below)
        return k + 1.0, term, bound, total + term, slope + term * (k + 1.0)

    one = lax.full_like(x, 1.0)
    return repeat_while(going, step, (scalar_value(0.0), one, one, one, lax.full_like(x, 0.0)), 20_000, 8)[3:]  # type: ignore[no-any-return]


# ---- Kummer's function


def _kummer_far(a: Any, b: Any, x: Any, shift: Any) -> Any:
    """exp(shift) M(a, b, x) for large x > 0: the asymptotic series (DLMF 13.7.1), up to its smallest term."""
    total = term = lax.full_like(x, 1.0)
    going = x == x
    for k in range(60):
        following = term * ((1.0 - a + k) * (b - a + k)) / ((k + 1.0) * x)
        going = going & (lax.abs(following) <= lax.abs(term))
        term = lax.select(going, following, lax.full_like(x, 0.0))
        total = total + term
    sign = sign_of_gamma(a) * sign_of_gamma(b)
    return sign * lax.exp((x + shift) + (log_gamma(b) - log_gamma(a) + (a - b) * lax.log(x))) * total


def _bound(parameter: Any, moves: bool) -> Any:
    """A parameter that makes no term 0, unless it is one that ends the sum and does not move."""
    positive = lax.abs(parameter) + 1.0
    return positive if moves else lax.select(_is_pole(parameter), parameter, positive)


def _hyp1f1_meaning(a: Any, b: Any, x: Any, moved: str = "") -> Any:
    """For x < 0 by Kummer's transformation exp(x) M(b - a, b, -x) (DLMF 13.2.39), unless the series is finite.

    moved: the parameter to differentiate by. A sum that it ends is not finite any more.
    """
    finite = _is_pole(a)
    turned = (x < 0.0) & ~finite if moved != "a" else x < 0.0
    above, place = lax.select(turned, b - a, a), lax.select(turned, -x, x)
    one, zero = lax.full_like(x, 1.0), lax.full_like(x, 0.0)
    shift = lax.select(turned, x, zero)
    pole = _is_pole(b) & ~(finite & (a > b))
    usable = (a == a) & (b == b) & (lax.abs(x) < math.inf) & ~pole
    spread = (lax.abs(above) + 1.0) * (lax.abs(b - above) + 1.0)
    far = usable & (place > 50.0) & (place > 2.0 * spread) & ~_is_pole(above)
    near = usable & ~far
    below = lax.select(usable, b, one)
    # b - a moves with either parameter
    bounds = [lax.select(turned, _bound(above, True), _bound(above, moved == "a"))] if moved else None
    series = _series([above], [below], lax.select(near, place, one), near, bounds)[0] * lax.exp(shift)
    asymptotic = _kummer_far(lax.select(far, above, one), below, lax.select(far, place, 100.0 * one), shift)
    value = lax.select(far, asymptotic, series)
    value = lax.select(pole, lax.full_like(x, math.inf), lax.select(usable, value, lax.full_like(x, math.nan)))
    if moved:
        return value
    return first_of((a != a) | (b != b) | (x != x), math.nan, a == 0.0, 1.0, a == b, lax.exp(x), value)


_hyp1f1_open = {
    name: ElementwiseFunction(f"hyp1f1_open_{name}", partial(_hyp1f1_meaning, moved=name), [None] * 3) for name in "ab"
}
_hyp1f1: ElementwiseFunction = ElementwiseFunction(
    "hyp1f1",
    _hyp1f1_meaning,
    [
        lambda y, *o: _hyp1f1_open["a"].partial(0)(y, *o),
        lambda y, *o: _hyp1f1_open["b"].partial(1)(y, *o),
        lambda y, a, b, x: a / b * _hyp1f1(a + 1.0, b + 1.0, x),
    ],
)


@compound()
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """Kummer's function M(a, b, x), with derivatives by all arguments. inf for b = 0, -1, ...

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.hyp1f1(1.0, 1.0, jnp.array([0.0, 1.0])).round(3)  # exp(x)
    Array([1.   , 2.718], dtype=float32)
    """
    return strong(_hyp1f1(*real("hyp1f1", a, b, x)))


# ---- Gauss's function


def _continued(a: Any, b: Any, c: Any, value: Any, slope: Any, rest: Any, active: Any) -> Any:
    """The solution of the hypergeometric equation with this value and slope at 1/2, at 1 - rest.

    By Taylor series; each halves the distance to 1. It needs no case for integers c - a - b.
    """
    total = a + b + 1.0

    def going(state: Any) -> Any:
        return active & (state[1] > rest)

    def step(state: Any) -> Any:
        n, r, f, g = state
        z = 1.0 - r
        moves = active & (r > rest)
        h = lax.select(moves, lax.min(r - rest, 0.5 * r), lax.full_like(r, 0.0))
        p, q = z * r, c - total * z

        def condition(inner: Any) -> Any:
            return inner[0] < 64.0

        def body(inner: Any) -> Any:
            k, u, v, f, g = inner  # the terms of orders k and k + 1; g is h times the slope
            numerator = (a + k) * (b + k) * u * h * h - (k + 1.0) * (k * (1.0 - 2.0 * z) + q) * v * h
            following = numerator / (p * ((k + 2.0) * (k + 1.0)))
            return k + 1.0, v, following, f + following, g + (k + 2.0) * following

        first = g * h
        inner = while_loop(condition, body, (scalar_value(0.0), f, first, f + first, first))
        f_new, g_new = inner[3:]
        safe = lax.select(moves, h, lax.full_like(h, 1.0))
        last = r - rest <= 0.5 * r
        r_new = lax.select(last, rest, r - h)
        return (
            n + 1.0,
            lax.select(moves, r_new, r),
            lax.select(moves, f_new, f),
            lax.select(moves, g_new / safe, g),
        )

    start = (scalar_value(0.0), lax.full_like(rest, 0.5), value, slope)
    return repeat_while(going, step, start, 1_100, 1)[2]


def _hyp2f1_meaning(a: Any, b: Any, c: Any, x: Any, moved: str = "") -> Any:
    """Finite sums directly, by Euler's transformation (DLMF 15.8.1) where that makes one; x < 0 by Pfaff's to
    x / (x - 1), between 0 and 1; up to 1/2 by the power series, beyond by continuation.

    moved: the parameter to differentiate by. A sum that it ends is not finite any more.
    """
    one, zero = lax.full_like(x, 1.0), lax.full_like(x, 0.0)
    small, large = lax.min(a, b), lax.max(a, b)
    a_ends, b_ends = _is_pole(a), _is_pole(b)
    first_end = lax.select(a_ends & b_ends, large, lax.select(a_ends, a, b))
    finite = a_ends | b_ends
    pole = _is_pole(c) & ~(finite & (first_end > c))
    usable = (a == a) & (b == b) & (c == c) & ~pole & (lax.abs(x) < math.inf)
    euler = usable & ~finite & (_is_pole(c - a) | _is_pole(c - b)) & (x < 1.0)
    direct = usable & finite
    if moved:
        euler, direct = euler & ~usable, usable & {"a": b_ends, "b": a_ends, "c": finite}[moved]
    turned = usable & ~direct & ~euler & (x < 0.0)
    inside = usable & ~direct & ~euler & (x < 1.0)
    below = lax.select(usable, c, one)
    exponent = first_of(euler, c - a - b, turned, -small, zero)
    p = first_of(euler, c - a, turned, small, a)
    q = first_of(euler, c - b, turned, c - large, b)
    rest = lax.select(inside, lax.select(turned, 1.0 / (1.0 - x), 1.0 - x), one)
    place = lax.select(direct | euler, x, lax.select(turned, -x * rest, lax.select(inside, x, zero)))
    near = lax.select(direct | euler, place, lax.min(place, lax.full_like(x, 0.5)))
    # in other sums than a finite one, all parameters move
    inner = [
        lax.select(direct, _bound(p, moved == "a"), _bound(p, True)),
        lax.select(direct, _bound(q, moved == "b"), _bound(q, True)),
    ]
    value, moment = _series([p, q], [below], near, direct | euler | inside, inner if moved else None)
    beyond = inside & (place > 0.5)
    value_beyond = _continued(p, q, below, value, moment / 0.5, rest, beyond)
    value = lax.select(beyond, value_beyond, value)
    value = value * lax.pow(lax.select(euler | turned, 1.0 - x, one), exponent)
    gauss = sign_of_gamma(c) * sign_of_gamma(c - a - b) * sign_of_gamma(c - a) * sign_of_gamma(c - b) * lax.exp(
        log_gamma(c) + log_gamma(c - a - b) - log_gamma(c - a) - log_gamma(c - b)
    )  # fmt: skip
    infinite = lax.full_like(x, math.inf)
    value = first_of(pole, math.inf, ~usable, math.nan, direct | inside | euler, value, infinite)
    value = lax.select(usable & ~direct & (x == 1.0) & (c - a - b > 0.0), gauss, value)
    if moved:
        return value
    trivial = (a == 0.0) | (b == 0.0) | (x == 0.0)
    broken = (a != a) | (b != b) | (c != c) | (x != x)
    return first_of(broken, math.nan, trivial, 1.0, value)


_hyp2f1_open = {
    name: ElementwiseFunction(f"hyp2f1_open_{name}", partial(_hyp2f1_meaning, moved=name), [None] * 4) for name in "abc"
}
_hyp2f1: ElementwiseFunction = ElementwiseFunction(
    "hyp2f1",
    _hyp2f1_meaning,
    [
        lambda y, *o: _hyp2f1_open["a"].partial(0)(y, *o),
        lambda y, *o: _hyp2f1_open["b"].partial(1)(y, *o),
        lambda y, *o: _hyp2f1_open["c"].partial(2)(y, *o),
        lambda y, a, b, c, x: a * b / c * _hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
    ],
)


@compound()
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Value:
    """Gauss's hypergeometric function for real x < 1, with derivatives by all arguments.

    For x = 1 the limit; inf for x > 1 (unless the sum is finite) and for c = 0, -1, ...

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.hyp2f1(1.0, 1.0, 2.0, jnp.array([0.0, 0.5])).round(3)  # -log(1 - x) / x
    Array([1.   , 1.386], dtype=float32)
    """
    return strong(_hyp2f1(*real("hyp2f1", a, b, c, x)))

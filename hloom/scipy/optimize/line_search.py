"""A step along a line that satisfies the strong Wolfe conditions: Nocedal and Wright, algorithms 3.5 and 3.6.

Both algorithms are one loop with one evaluation of the function in each iteration, so that it is compiled once. The
loop has two phases. In the first it doubles the step until an interval has a good step inside; in the second the
interval shrinks around it. `low` is the best step so far: it satisfies the first condition, and is where the search
ends. So a search that fails still goes down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import lax
from ... import numpy as jnp
from ...autodiff.api import value_and_grad
from ...lax import Precision

DECREASE, CURVATURE = 1e-4, 0.9
"""The constants of the two conditions."""
_MOST_CUTS = 30
_MARGINS = 0.2, 0.1
"""How near to an end of the interval, in its length, a cubic's and a parabola's minimum may be."""


class Point(NamedTuple):
    """A step, and the value and the slope there."""

    at: Any
    value: Any
    slope: Any


class Step(NamedTuple):
    """The result of the search: the step, value and gradient there, how often they were computed, and a status.

    status: 0 the conditions hold, 1 the interval became too small, 3 the step was doubled too often.
    """

    at: Any
    value: Any
    gradient: Any
    evaluations: Any
    status: Any

    @property
    def failed(self) -> Any:
        return self.status != 0


class _State(NamedTuple):
    low: Point
    gradient: Any
    """At low."""
    high: Point
    """The other end of the interval, in the second phase."""
    third: Point
    """A point that was an end before, for the cubic."""
    is_cutting: Any
    """The second phase."""
    doublings: Any
    cuts: Any
    is_done: Any
    has_failed: Any


def line_search(
    fun: Callable[[Any], Any], x: Any, direction: Any, value: Any, gradient: Any, first: Any, most: int
) -> Step:
    """A step along `direction`, down from x, where value and gradient are known. `first`: the step to begin with."""

    def along(t: Any) -> tuple[Point, Any]:
        found, g = value_and_grad(fun)(x + t.astype(direction.dtype) * direction)
        return Point(t, found.astype(start.value.dtype), _slope(g, direction)), g.astype(gradient.dtype)

    real = jnp.real(direction).dtype
    start = Point(jnp.zeros((), real), jnp.asarray(value), _slope(gradient, direction))
    smallest = 10 * jnp.finfo(real).eps

    def goes_on(s: _State) -> Any:
        return ~s.is_done & ~s.has_failed & (s.doublings < most)

    def turn(s: _State) -> _State:
        is_short = abs(s.high.at - s.low.at) <= smallest * jnp.maximum(abs(s.high.at), abs(s.low.at))
        proposed = jnp.where(s.doublings == 0, first, 2 * s.low.at).astype(real)
        p, g = along(jnp.where(s.is_cutting, _inside(s), proposed))

        within = p.value <= start.value + DECREASE * p.at * start.slope  # false for NaN
        is_worse = p.value >= s.low.value
        too_high = ~within | (is_worse & (s.is_cutting | (s.doublings > 0)))
        is_done = ~too_high & (abs(p.slope) <= -CURVATURE * start.slope)
        side = jnp.where(s.is_cutting, s.high.at - s.low.at, 1)
        turns = ~too_high & ~is_done & (p.slope * side >= 0)
        """p is better, and the minimum is between it and the low before."""
        starts = ~s.is_cutting & (too_high | turns)

        high = _choose(too_high, p, _choose(turns, s.low, s.high))
        third = _choose(too_high | turns, s.high, s.low)
        return _State(
            low=_choose(too_high, s.low, p),
            gradient=jnp.where(too_high, s.gradient, g),
            high=high,
            third=_choose(s.is_cutting, third, high),
            is_cutting=s.is_cutting | starts,
            doublings=s.doublings + ~s.is_cutting * ~starts,
            cuts=s.cuts + s.is_cutting,
            is_done=is_done,
            has_failed=~is_done & s.is_cutting & (is_short | (s.cuts + 1 >= _MOST_CUTS)),
        )

    no, none = jnp.zeros((), bool), jnp.zeros((), int)
    s = lax.while_loop(goes_on, turn, _State(start, gradient, start, start, no, none, none, no, no))
    status = jnp.where(s.is_done, 0, jnp.where(s.has_failed, 1, 3))
    return Step(s.low.at, s.low.value, s.gradient, s.doublings + s.cuts + s.is_cutting, status)


def _slope(gradient: Any, direction: Any) -> Any:
    return jnp.real(jnp.dot(gradient, direction, precision=Precision.HIGHEST))


def _choose(which: Any, p: Point, q: Point) -> Point:
    return Point(*[jnp.where(which, a, b) for a, b in zip(p, q, strict=True)])


def _inside(s: _State) -> Any:
    """A step inside of the interval: the minimum of a cubic or of a parabola if it is not near to an end."""
    low, high = s.low.at, s.high.at
    least, largest = jnp.minimum(low, high), jnp.maximum(low, high)
    length = largest - least
    for_cubic, for_parabola = (margin * length for margin in _MARGINS)
    cubic, parabola = _cubic_minimum(s.low, s.high, s.third), _parabola_minimum(s.low, s.high)
    use_cubic = (s.cuts > 0) & (cubic > least + for_cubic) & (cubic < largest - for_cubic)
    use_parabola = (parabola > least + for_parabola) & (parabola < largest - for_parabola)
    return jnp.where(use_cubic, cubic, jnp.where(use_parabola, parabola, (low + high) / 2))


def _cubic_minimum(a: Point, b: Point, c: Point) -> Any:
    """Of the cubic with a's value and slope, and the values of b and c; NaN if it has none."""
    u, v = b.at - a.at, c.at - a.at
    above_b, above_c = b.value - a.value - a.slope * u, c.value - a.value - a.slope * v
    scale = (u * v) ** 2 * (u - v)
    third = (v**2 * above_b - u**2 * above_c) / scale
    second = (u**3 * above_c - v**3 * above_b) / scale
    root = jnp.sqrt(second**2 - 3 * third * a.slope)
    return a.at + (root - second) / (3 * third)


def _parabola_minimum(a: Point, b: Point) -> Any:
    """Of the parabola with a's value and slope, and the value of b."""
    length = b.at - a.at
    return a.at - a.slope * length**2 / (2 * (b.value - a.value - a.slope * length))

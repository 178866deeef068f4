"""Ordinary differential equations. Names, meaning and numbers follow jax.experimental.ode.

Steps follow Dormand and Prince (1980), of order 5 with an error estimate of order 4; between the ends of a step the
solution is a polynomial of degree 4 (Shampine, "Some practical Runge-Kutta formulas", 1986). The derivative solves the
adjoint equation backwards in time, from one of the given times to the one before it (Chen et al., "Neural ordinary
differential equations", 2018, appendix C). It keeps the solution at these times only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax, tree
from ... import numpy as jnp
from ...autodiff.api import vjp
from ...autodiff.custom import custom_vjp
from ...autodiff.functions import closure_convert
from ...flatten_util.ravel import ravel_pytree
from ...numpy.promotion import promote_dtypes_inexact
from ...tracer import dtypes
from ...tracer.arrays.array import as_value
from ...tracer.arrays.operators import ArrayBase
from ...tracer.jit import jit

Function = Callable[..., Any]

_TIMES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
"""Where in a step the slopes are computed."""
_STAGES = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
"""Row i: the weights of the earlier slopes that lead to the point of slope i. The last row is the step itself."""
_FOURTH = np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
"""The step by the method of order 4."""
_MIDDLE = np.array(
    [
        6025192743 / 30085553152 / 2,
        0,
        51252292925 / 65400821598 / 2,
        -2691868925 / 45128329728 / 2,
        187940372067 / 1594534317056 / 2,
        -1776094331 / 19743644256 / 2,
        11237099 / 235043384 / 2,
    ]
)
"""The way to the middle of the step."""
_SAFETY, _MOST, _LEAST, _ORDER = 0.9, 10.0, 0.2, 5.0
"""Of the next step: a safety margin, the factors by which it may grow and shrink, and the order of the error."""


def odeint(
    func: Function,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y = y0 at t[0], at all times of t.

    Args:
      func: a function of y, a time and `args` that returns the same structure and types as y. It may close over arrays.
      y0: an array or a pytree of arrays.
      t: a vector of floats, ascending.
      args: pytrees of arrays.
      rtol, atol: the error of a step may be atol + rtol |y|, in the root of the mean of its squares.
      mxstep: how many steps there are between two times, at most. hmax: the longest step.

    Returns:
      y at each time, along a new first dimension. It is differentiable in y0, t, args and the variables that func
      closes over.

    Raises:
      TypeError: t is not an array of floats, or args hold something else than arrays.

    >>> decay = lambda y, t, rate: -rate * y
    >>> odeint(decay, jnp.array(1.0), jnp.array([0.0, 1.0, 2.0]), 0.5).round(3)
    Array([1.   , 0.607, 0.368], dtype=float32)
    >>> hloom.grad(lambda rate: odeint(decay, 1.0, jnp.array([0.0, 1.0]), rate)[-1])(0.5).round(3)
    Array(-0.607, dtype=float32, weak_type=True)
    """
    for arg in tree.leaves(args):
        if not isinstance(arg, ArrayBase | np.ndarray | np.generic | bool | int | float | complex):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {arg!r}, a {type(arg).__name__}"
            )
    if not isinstance(t, ArrayBase | np.ndarray) or not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t!r}")
    times = jnp.asarray(t)
    if times.ndim != 1 or not times.shape[0]:
        raise ValueError(f"t must be a vector with at least one time, not of shape {times.shape}")
    y0 = tree.map(lambda leaf: promote_dtypes_inexact(leaf)[0], y0)
    converted, captured = closure_convert(func, y0, times[0], *args)
    leaves, structure = tree.flatten((args, tuple(captured)))
    values = [as_value(leaf) for leaf in leaves]
    moving = [dtypes.is_inexact(v.aval.dtype) for v in values]

    def run(y0: Any, times: Any, inputs: list[Any], fixed: list[Any]) -> Any:
        start, unravel = ravel_pytree(y0)

        def flat(y: Any, time: Any, inputs: list[Any], fixed: list[Any]) -> Any:
            rest, others = iter(inputs), iter(fixed)
            own, consts = tree.unflatten(structure, [next(rest) if m else next(others) for m in moving])
            return ravel_pytree(converted(unravel(y), time, *own, *consts))[0].astype(start.dtype)

        found = _solver(flat, _Control(rtol, atol, mxstep, hmax))(start, times, inputs, fixed)
        return _unraveled(found, y0)

    inputs = [v for v, m in zip(values, moving) if m]
    return jit(run)(y0, times, inputs, [v for v, m in zip(values, moving) if not m])


def _unraveled(rows: Any, like: Any) -> Any:
    """Vectors, one in each row, as a pytree like `like`, with the rows as a new first dimension."""
    leaves, structure = tree.flatten(like)
    found, begin = [], 0
    for leaf in leaves:
        part = rows[:, begin : begin + leaf.size].reshape(-1, *leaf.shape)
        if jnp.iscomplexobj(part) and not jnp.iscomplexobj(leaf):
            part = part.real
        found.append(part.astype(leaf.dtype))
        begin += leaf.size
    return tree.unflatten(structure, found)


class _Control:
    """The user's options for steps."""

    def __init__(self, rtol: Any, atol: Any, mxstep: Any, hmax: Any) -> None:
        self.rtol, self.atol, self.mxstep, self.hmax = rtol, atol, mxstep, hmax

    def tolerance(self, *values: Any) -> Any:
        largest = abs(values[0])
        for v in values[1:]:
            largest = jnp.maximum(largest, abs(v))
        return self.atol + self.rtol * largest


def _solver(func: Function, control: _Control) -> Function:
    """(y0, times, inputs, fixed) -> y at all times, one in each row. func(y, t, inputs, fixed) takes vectors y."""

    @custom_vjp
    def solve(y0: Any, times: Any, inputs: list[Any], fixed: list[Any]) -> Any:
        return _forward(lambda y, t: func(y, t, inputs, fixed), control, y0, times)

    def forwards(y0: Any, times: Any, inputs: list[Any], fixed: list[Any]) -> Any:
        ys = solve(y0, times, inputs, fixed)
        return ys, (ys, times, inputs, fixed)

    def backwards(kept: Any, ct: Any) -> Any:
        ys, times, inputs, fixed = kept
        y_bar, times_bar, inputs_bar = _adjoint(func, control, ys, times, inputs, fixed, ct)
        return y_bar, times_bar, inputs_bar, None

    solve.defvjp(forwards, backwards)
    return solve


# ---- forwards


def _forward(func: Function, control: _Control, y0: Any, times: Any) -> Any:
    def to_time(state: Any, target: Any) -> Any:
        def goes_on(inner: Any) -> Any:
            count, (_, _, t, dt, _, _) = inner
            return (t < target) & (count < control.mxstep) & (dt > 0)

        def step(inner: Any) -> Any:
            count, state = inner
            return count + 1, _step(func, control, *state)

        _, state = lax.while_loop(goes_on, step, (0, state))
        _, _, t, _, before, polynomial = state
        part = ((target - before) / (t - before)).astype(polynomial.dtype)
        value = _value(polynomial, part)
        return state, jnp.where(t >= target, value, math.nan)  # else the steps have ended on the way

    slope = func(y0, times[0])
    dt = jnp.clip(_first_step(func, control, y0, times[0], slope), 0.0, control.hmax).astype(times.dtype)
    start = (y0, slope, times[0], dt, times[0], jnp.stack([y0] * 5))
    _, ys = lax.scan(to_time, start, times[1:])
    return jnp.concatenate([y0[None], ys])


def _step(func: Function, control: _Control, y: Any, slope: Any, t: Any, dt: Any, before: Any, polynomial: Any) -> Any:
    """A step if its error is small enough, and in any case the length of the next one."""
    dtype = y.dtype
    length = dt.astype(dtype)
    rows, places = jnp.asarray(_STAGES.astype(dtype)), jnp.asarray(_TIMES.astype(dt.dtype))

    def stage(i: Any, slopes: Any) -> Any:
        return slopes.at[i].set(func(y + length * jnp.dot(rows[i], slopes), t + dt * places[i]))

    slopes = lax.fori_loop(1, 7, stage, jnp.zeros((7, y.shape[0]), dtype).at[0].set(slope))
    new = y + length * jnp.dot(_STAGES[6].astype(dtype), slopes)
    error = length * jnp.dot((_STAGES[6] - _FOURTH).astype(dtype), slopes)
    ratio = _mean_ratio(error, control.tolerance(y, new))
    is_good = ratio <= 1.0
    next_dt = jnp.clip(_next_length(dt, ratio), 0.0, control.hmax).astype(dt.dtype)
    candidates = (
        (new, y),
        (slopes[6], slope),
        (t + dt, t),
        (next_dt, next_dt),
        (t, before),
        (_polynomial(y, new, slopes, length), polynomial),
    )
    return tuple([jnp.where(is_good, a, b) for a, b in candidates])


def _mean_ratio(error: Any, allowed: Any) -> Any:
    ratio = abs(error) / allowed
    return jnp.sqrt(jnp.mean(ratio * ratio))


def _next_length(dt: Any, ratio: Any) -> Any:
    least = jnp.where(ratio < 1, 1.0, _LEAST)
    factor = jnp.minimum(_MOST, jnp.maximum(ratio ** (-1.0 / _ORDER) * _SAFETY, least))
    return jnp.where(ratio == 0, dt * _MOST, dt * factor)


def _first_step(func: Function, control: _Control, y0: Any, t0: Any, slope: Any) -> Any:
    """E. Hairer, S. P. Norsett, G. Wanner, "Solving ordinary differential equations I", section II.4."""
    scale, order = control.tolerance(y0), 4
    size, speed = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(slope / scale)
    tiny = (size < 1e-5) | (speed < 1e-5)
    guess = jnp.where(tiny, 1e-6, 0.01 * size / jnp.where(tiny, 1, speed))
    other = func(y0 + guess.astype(y0.dtype) * slope, t0 + guess.astype(t0.dtype))
    change = jnp.linalg.norm((other - slope) / scale) / guess
    largest = jnp.maximum(speed, change)
    still = largest <= 1e-15
    found = (0.01 / jnp.where(still, 1, largest)) ** (1.0 / (order + 1.0))
    return jnp.minimum(100.0 * guess, jnp.where(still, jnp.maximum(1e-6, guess * 1e-3), found))


def _polynomial(y: Any, new: Any, slopes: Any, dt: Any) -> Any:
    """The coefficients, highest first, of the polynomial of a part of the step with the values and slopes of both ends
    and the value in the middle."""
    middle = y + dt * jnp.dot(_MIDDLE.astype(y.dtype), slopes)
    first, last = dt * slopes[0], dt * slopes[6]
    return jnp.stack(
        [
            2 * (last - first) - 8 * (y + new) + 16 * middle,
            5 * first - 3 * last + 18 * y + 14 * new - 32 * middle,
            last - 4 * first - 11 * y - 5 * new + 16 * middle,
            first,
            y,
        ]
    )


def _value(polynomial: Any, x: Any) -> Any:
    found = polynomial[0]
    for k in range(1, 5):
        found = found * x + polynomial[k]
    return found


# ---- backwards


def _adjoint(
    func: Function, control: _Control, ys: Any, times: Any, inputs: list[Any], fixed: list[Any], ct: Any
) -> tuple[Any, Any, list[Any]]:
    """The cotangents of y0, times and inputs. Between two times a state of (y, and the cotangents of y, of the first
    time and of the inputs so far) moves backwards: time is its negative. This movement is solved as any other, so it
    has an adjoint of its own: derivatives may be of any order."""

    def backward(state: Any, negative: Any, inputs: list[Any], fixed: list[Any]) -> Any:
        y, y_bar, _, _ = state
        slope, pull = vjp(lambda y, t, inputs: func(y, t, inputs, fixed), y, -negative, inputs)
        return (-slope, *pull(y_bar))

    def interval(state: Any, i: Any) -> Any:
        y_bar, first_bar, inputs_bar = state
        time_bar = jnp.dot(func(ys[i], times[i], inputs, fixed), ct[i]).real.astype(times.dtype)
        start = (ys[i], y_bar, first_bar - time_bar, inputs_bar)
        flat, unravel = ravel_pytree(start)

        def moved(y: Any, t: Any, inputs: list[Any], fixed: list[Any]) -> Any:
            return ravel_pytree(backward(unravel(y), t, inputs, fixed))[0]

        found = _solver(moved, control)(flat, jnp.stack([-times[i], -times[i - 1]]), inputs, fixed)
        _, y_bar, first_bar, inputs_bar = unravel(found[1])
        return (y_bar + ct[i - 1], first_bar, inputs_bar), time_bar

    start = (ct[-1], jnp.zeros((), times.dtype), [jnp.zeros_like(x) for x in inputs])
    (y_bar, first_bar, inputs_bar), found = lax.scan(interval, start, jnp.arange(times.shape[0] - 1, 0, -1))
    return y_bar, jnp.concatenate([first_bar[None], jnp.flip(found)]), inputs_bar

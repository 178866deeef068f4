"""Loops over a few scalars: recurrences, filters, small ODEs, searches."""

from __future__ import annotations

import numpy as np

from .case import Loop, by_hand, floats, gradient, uniform
from .keys import fold_in, normal

f4 = np.float32


def affine(jax, jnp, lax, steps):
    return lambda s, a, b: lax.fori_loop(0, steps, lambda _, s: s * a + b, s)


@by_hand
def affine_numba(s, a, b, steps):
    for _ in range(steps):
        s = s * a + b
    return s


def logistic(jax, jnp, lax, steps):
    def f(x, y, r):
        def step(_, state):
            x, y = state
            return r * x * (1 - x) + 0.01 * (y - x), r * y * (1 - y) + 0.01 * (x - y)

        return lax.fori_loop(0, steps, step, (x, y))

    return f


@by_hand
def logistic_numba(x, y, r, steps):
    for _ in range(steps):
        x, y = (
            r * x * (f4(1) - x) + f4(0.01) * (y - x),
            r * y * (f4(1) - y) + f4(0.01) * (x - y),
        )
    return x, y


def collatz(jax, jnp, lax, limit):
    def f(stop):
        def length(n, found):
            total, longest = found
            _, steps = lax.while_loop(
                lambda s: s[0] != 1,
                lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
                (n, 0),
            )
            return total + steps, jnp.maximum(longest, steps)

        return lax.fori_loop(1, stop, length, (0, 0))

    return f


@by_hand
def collatz_numba(stop, limit):
    total, longest = 0, 0
    for start in range(1, stop):
        n, steps = start, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        total += steps
        longest = max(longest, steps)
    return total, longest


def kepler(jax, jnp, lax, count):
    def f(anomalies, eccentricity):
        def solve(mean):
            def step(state):
                e, _, k = state
                change = (e - eccentricity * jnp.sin(e) - mean) / (1 - eccentricity * jnp.cos(e))
                return e - change, jnp.abs(change), k + 1

            start = (mean, jnp.ones_like(mean), 0)
            return lax.while_loop(lambda s: (s[1] > 1e-5) & (s[2] < 20), step, start)[0]

        return lax.map(solve, anomalies)

    return f


@by_hand
def kepler_numba(anomalies, eccentricity, count):
    out = np.empty_like(anomalies)
    for i in range(count):
        e, size, k = anomalies[i], f4(1), 0
        while size > f4(1e-5) and k < 20:
            change = (e - eccentricity * np.sin(e) - anomalies[i]) / (f4(1) - eccentricity * np.cos(e))
            e -= change
            size = abs(change)
            k += 1
        out[i] = e
    return out


def kepler_numpy(anomalies, eccentricity, count):
    e, size = anomalies.copy(), np.ones_like(anomalies)
    for _ in range(20):
        active = size > 1e-5
        if not active.any():
            break
        change = (e - eccentricity * np.sin(e) - anomalies) / (1 - eccentricity * np.cos(e))
        e -= np.where(active, change, f4(0))
        size = np.where(active, np.abs(change), size)
    return e


def biquad(jax, jnp, lax, samples):
    def f(x, coefficients):
        def step(state, value):
            out = []
            for k, (s, t) in enumerate(state):
                b0, b1, b2, a1, a2 = coefficients[k]
                result = b0 * value + s
                out.append((b1 * value - a1 * result + t, b2 * value - a2 * result))
                value = result
            return tuple(out), value

        zero = jnp.float32(0)
        return lax.scan(step, ((zero, zero),) * 3, x)[1]

    return f


@by_hand
def biquad_numba(x, coefficients, samples):
    s, t = np.zeros(3, x.dtype), np.zeros(3, x.dtype)
    out = np.empty_like(x)
    for i in range(samples):
        value = x[i]
        for k in range(3):
            result = coefficients[k, 0] * value + s[k]
            s[k] = coefficients[k, 1] * value - coefficients[k, 3] * result + t[k]
            t[k] = coefficients[k, 2] * value - coefficients[k, 4] * result
            value = result
        out[i] = value
    return out


def pid(jax, jnp, lax, steps):
    """A motor with friction follows a target; the controller's output is limited, its integral too."""

    def f(targets, gains):
        def step(state, target):
            position, speed, integral, before = state
            error = target - position
            integral = jnp.clip(integral + error * 0.01, -1, 1)
            drive = jnp.clip(gains[0] * error + gains[1] * integral + gains[2] * (error - before) * 100, -5, 5)
            speed = speed + 0.01 * (drive - 0.4 * speed - jnp.where(speed > 0, 0.1, -0.1))
            return (position + 0.01 * speed, speed, integral, error), (position, drive)

        zero = jnp.float32(0)
        return lax.scan(step, (zero,) * 4, targets)[1]

    return f


@by_hand
def pid_numba(targets, gains, steps):
    position = speed = integral = before = f4(0)
    positions, drives = np.empty_like(targets), np.empty_like(targets)
    for i in range(steps):
        error = targets[i] - position
        integral = min(max(integral + error * f4(0.01), f4(-1)), f4(1))
        drive = gains[0] * error + gains[1] * integral + gains[2] * (error - before) * f4(100)
        drive = min(max(drive, f4(-5)), f4(5))
        positions[i], drives[i] = position, drive
        friction = f4(0.1) if speed > 0 else f4(-0.1)
        speed = speed + f4(0.01) * (drive - f4(0.4) * speed - friction)
        position = position + f4(0.01) * speed
        before = error
    return positions, drives


def averages(jax, jnp, lax, samples):
    """Fast and slow exponential moving averages, their difference, and its own average."""

    def f(prices):
        def step(state, price):
            fast, slow, signal = state
            fast, slow = fast + 0.15 * (price - fast), slow + 0.07 * (price - slow)
            signal = signal + 0.2 * (fast - slow - signal)
            return (fast, slow, signal), (fast - slow, signal)

        return lax.scan(step, (prices[0], prices[0], jnp.float32(0)), prices)[1]

    return f


@by_hand
def averages_numba(prices, samples):
    fast = slow = prices[0]
    signal = f4(0)
    differences, signals = np.empty_like(prices), np.empty_like(prices)
    for i in range(samples):
        fast += f4(0.15) * (prices[i] - fast)
        slow += f4(0.07) * (prices[i] - slow)
        signal += f4(0.2) * (fast - slow - signal)
        differences[i], signals[i] = fast - slow, signal
    return differences, signals


def pendulum(jax, jnp, lax, steps):
    """Damped and driven; symplectic Euler, all states kept."""

    def f(angle, speed, force):
        def step(state, i):
            angle, speed = state
            speed = speed + 0.01 * (force * jnp.cos(0.0066 * i) - 0.5 * speed - jnp.sin(angle))
            angle = angle + 0.01 * speed
            return (angle, speed), (angle, speed)

        return lax.scan(step, (angle, speed), jnp.arange(steps))[1]

    return f


@by_hand
def pendulum_numba(angle, speed, force, steps):
    angles, speeds = np.empty(steps, np.float32), np.empty(steps, np.float32)
    for i in range(steps):
        speed = speed + f4(0.01) * (force * np.cos(f4(0.0066) * f4(i)) - f4(0.5) * speed - np.sin(angle))
        angle = angle + f4(0.01) * speed
        angles[i], speeds[i] = angle, speed
    return angles, speeds


WIDTH = 60


def many_scalars(jax, jnp, lax, steps):
    """As a generated model has them: each variable is a scalar of its own, a step is three rounds over all."""

    def f(start):
        def step(_, state):
            for _ in range(3):
                others = (*state[1:], state[0])
                state = tuple(x + 0.01 * jnp.sin(y - x) for x, y in zip(state, others))
            return state

        return jnp.stack(lax.fori_loop(0, steps, step, tuple(start[i] for i in range(WIDTH))))

    return f


@by_hand
def many_scalars_numba(start, steps):
    x, y = start.copy(), np.empty_like(start)
    for _ in range(3 * steps):
        for i in range(x.size - 1):
            y[i] = x[i] + f4(0.01) * np.sin(x[i + 1] - x[i])
        y[-1] = x[-1] + f4(0.01) * np.sin(x[0] - x[-1])
        x, y = y, x
    return x


def many_scalars_numpy(start, steps):
    x = start
    for _ in range(3 * steps):
        x = x + f4(0.01) * np.sin(np.roll(x, -1) - x)
    return x


def random_walk(jax, jnp, lax, steps):
    """Reflected at 0 and at 10; the key of a step is made in the loop."""

    def f(key):
        key = jax.random.wrap_key_data(key)

        def step(i, state):
            x, furthest = state
            x = jnp.abs(x + jax.random.normal(jax.random.fold_in(key, i)))
            x = jnp.where(x > 10, 20 - x, x)
            return x, jnp.maximum(furthest, x)

        return lax.fori_loop(0, steps, step, (jnp.float32(0), jnp.float32(0)))

    return f


@by_hand
def random_walk_numba(key, steps):
    x = furthest = f4(0)
    for i in range(steps):
        first, second = fold_in(key[0], key[1], i)
        x = abs(x + normal(first, second, 0))
        if x > 10:
            x = f4(20) - x
        furthest = max(furthest, x)
    return x, furthest


SECTIONS = np.array([[0.2, 0.4, 0.2, -0.5, 0.3], [0.3, 0.1, 0.2, -0.7, 0.4], [0.5, -0.2, 0.3, 0.2, 0.1]], np.float32)
SCALAR = frozenset({"scalar"})

BIQUAD = Loop(
    "biquad", "filter: three second-order sections, 20,000 samples", SCALAR, biquad,
    lambda rng, samples: [floats(rng, samples), SECTIONS],
    {"samples": 20_000}, {"samples": 9}, biquad_numba,
)  # fmt: skip
AVERAGES = Loop(
    "averages", "exponential moving averages and their signal, 20,000 prices", SCALAR, averages,
    lambda rng, samples: [100 + np.cumsum(floats(rng, samples), dtype=np.float32)],
    {"samples": 20_000}, {"samples": 9}, averages_numba,
)  # fmt: skip
PENDULUM = Loop(
    "pendulum", "damped, driven pendulum, 10,000 steps kept", SCALAR, pendulum,
    lambda rng, steps: [f4(0.3), f4(0), f4(0.4)],
    {"steps": 10_000}, {"steps": 9}, pendulum_numba,
)  # fmt: skip

LOOPS = [
    Loop("affine", "s * a + b, 1,000,000 steps", SCALAR, affine, lambda rng, steps: [f4(1), f4(0.999), f4(0.5)],
         {"steps": 1_000_000}, {"steps": 9}, affine_numba),
    Loop("logistic", "two coupled logistic maps, 100,000 steps", SCALAR, logistic,
         lambda rng, steps: [f4(0.3), f4(0.6), f4(3.2)], {"steps": 100_000}, {"steps": 9}, logistic_numba),
    Loop("collatz", "lengths of Collatz sequences below 3,000", SCALAR | {"while"}, collatz,
         lambda rng, limit: [np.int32(limit)], {"limit": 3_000}, {"limit": 12}, collatz_numba),
    Loop("kepler", "Newton's method on Kepler's equation, 2,000 roots one by one", SCALAR | {"while"}, kepler,
         lambda rng, count: [uniform(rng, 0, 3, count), f4(0.6)],
         {"count": 2_000}, {"count": 5}, kepler_numba, kepler_numpy),
    BIQUAD,
    Loop("pid", "PID controller of a motor, 10,000 steps", SCALAR, pid,
         lambda rng, steps: [np.sin(np.arange(steps) * 0.003).astype(np.float32), np.array([8, 2, 0.3], np.float32)],
         {"steps": 10_000}, {"steps": 9}, pid_numba),
    AVERAGES,
    PENDULUM,
    Loop("many-scalars", "60 scalars, three rounds of sin a step, 614 steps", SCALAR | {"wide"}, many_scalars,
         lambda rng, steps: [floats(rng, WIDTH)], {"steps": 614}, {"steps": 2},
         many_scalars_numba, many_scalars_numpy),
    Loop("random-walk", "random walk, a key and a normal number a step, 10,000 steps", SCALAR | {"random"},
         random_walk, lambda rng, steps: [np.array([0, 7], np.uint32)],
         {"steps": 10_000}, {"steps": 9}, random_walk_numba),
    gradient(BIQUAD, (0, 1), lambda jnp, y: jnp.sum(y * y)),
    gradient(AVERAGES, (0,), lambda jnp, y: jnp.sum((y[0] - y[1]) ** 2)),
]  # fmt: skip

"""Small recurrent networks, and batches of small problems with a leading dimension."""

from __future__ import annotations

import numpy as np
from numba import prange

from .case import Loop, by_hand, by_hand_threads, floats, gradient, uniform
from .keys import fold_in, normal

f4 = np.float32


def rnn(jax, jnp, lax, batch, width, steps):
    def f(w, u, b, inputs):
        def step(h, x):
            h = jnp.tanh(x @ w + h @ u + b)
            return h, h

        return lax.scan(step, jnp.zeros((batch, width), jnp.float32), inputs)[1]

    return f


@by_hand
def rnn_numba(w, u, b, inputs, batch, width, steps):
    out = np.empty_like(inputs)
    h, new = np.zeros((batch, width), inputs.dtype), np.empty((batch, width), inputs.dtype)
    for t in range(steps):
        new = np.dot(inputs[t], w) + np.dot(h, u)
        for i in range(batch):
            for j in range(width):
                h[i, j] = np.tanh(new[i, j] + b[j])
                out[t, i, j] = h[i, j]
    return out


def rnn_numpy(w, u, b, inputs, batch, width, steps):
    h, out = np.zeros((batch, width), np.float32), np.empty_like(inputs)
    for t in range(steps):
        h = out[t] = np.tanh(inputs[t] @ w + h @ u + b)
    return out


def lstm(jax, jnp, lax, width, steps):
    """One sequence: products of a matrix and a vector."""

    def f(w, u, b, inputs):
        def step(state, x):
            h, c = state
            i, g, r, o = jnp.split(x @ w + h @ u + b, 4)
            c = jax.nn.sigmoid(r) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(step, (jnp.zeros(width, jnp.float32), jnp.zeros(width, jnp.float32)), inputs)[1]

    return f


@by_hand
def sigmoid(x):
    return f4(1) / (f4(1) + np.exp(-x))


@by_hand
def lstm_numba(w, u, b, inputs, width, steps):
    h, c = np.zeros(width, inputs.dtype), np.zeros(width, inputs.dtype)
    gates, out = np.empty_like(b), np.empty_like(inputs)
    for t in range(steps):
        for k in range(4 * width):
            gates[k] = b[k]
        for j in range(width):
            for k in range(4 * width):
                gates[k] += inputs[t, j] * w[j, k] + h[j] * u[j, k]
        for j in range(width):
            i, g, r, o = gates[j], gates[width + j], gates[2 * width + j], gates[3 * width + j]
            c[j] = sigmoid(r) * c[j] + sigmoid(i) * np.tanh(g)
            h[j] = sigmoid(o) * np.tanh(c[j])
            out[t, j] = h[j]
    return out


def odes(jax, jnp, lax, count, steps):
    """Lorenz' model of 1996, RK4, many at once: state [count, 8], a force for each."""

    def f(x, force):
        def slope(x):
            return (jnp.roll(x, -1, 1) - jnp.roll(x, 2, 1)) * jnp.roll(x, 1, 1) - x + force[:, None]

        def step(_, x):
            k1 = slope(x)
            k2 = slope(x + 0.005 * k1)
            k3 = slope(x + 0.005 * k2)
            k4 = slope(x + 0.01 * k3)
            return x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return lax.fori_loop(0, steps, step, x)

    return f


@by_hand
def odes_slope(x, force, out):
    for i in range(8):
        out[i] = (x[(i + 1) % 8] - x[(i + 6) % 8]) * x[(i + 7) % 8] - x[i] + force


@by_hand_threads
def odes_numba(x, force, count, steps):
    x = x.copy()
    for n in prange(count):
        k1, k2, k3, k4 = np.empty(8, x.dtype), np.empty(8, x.dtype), np.empty(8, x.dtype), np.empty(8, x.dtype)
        y, t = x[n], np.empty(8, x.dtype)
        for _ in range(steps):
            odes_slope(y, force[n], k1)
            for i in range(8):
                t[i] = y[i] + f4(0.005) * k1[i]
            odes_slope(t, force[n], k2)
            for i in range(8):
                t[i] = y[i] + f4(0.005) * k2[i]
            odes_slope(t, force[n], k3)
            for i in range(8):
                t[i] = y[i] + f4(0.01) * k3[i]
            odes_slope(t, force[n], k4)
            for i in range(8):
                y[i] += f4(0.01 / 6) * (k1[i] + f4(2) * k2[i] + f4(2) * k3[i] + k4[i])
    return x


def odes_numpy(x, force, count, steps):
    def slope(x):
        return (np.roll(x, -1, 1) - np.roll(x, 2, 1)) * np.roll(x, 1, 1) - x + force[:, None]

    for _ in range(steps):
        k1 = slope(x)
        k2 = slope(x + f4(0.005) * k1)
        k3 = slope(x + f4(0.005) * k2)
        k4 = slope(x + f4(0.01) * k3)
        x = x + f4(0.01 / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def pendulums(jax, jnp, lax, count, steps):
    """Damped, two numbers each."""

    def f(angle, speed, damping):
        def step(_, state):
            angle, speed = state
            speed = speed - 0.01 * (damping * speed + jnp.sin(angle))
            return angle + 0.01 * speed, speed

        return lax.fori_loop(0, steps, step, (angle, speed))

    return f


@by_hand_threads
def pendulums_numba(angle, speed, damping, count, steps):
    angles, speeds = np.empty_like(angle), np.empty_like(speed)
    for n in prange(count):
        x, v = angle[n], speed[n]
        for _ in range(steps):
            v -= f4(0.01) * (damping[n] * v + np.sin(x))
            x += f4(0.01) * v
        angles[n], speeds[n] = x, v
    return angles, speeds


def pendulums_numpy(angle, speed, damping, count, steps):
    for _ in range(steps):
        speed = speed - f4(0.01) * (damping * speed + np.sin(angle))
        angle = angle + f4(0.01) * speed
    return angle, speed


def langevin(jax, jnp, lax, count, steps):
    """Chains in a double well; a step draws a normal number for each."""

    def f(key, x):
        key = jax.random.wrap_key_data(key)

        def step(i, x):
            noise = jax.random.normal(jax.random.fold_in(key, i), (count,))
            return x - 0.01 * (x * x - 1) * x + 0.1 * noise

        return lax.fori_loop(0, steps, step, x)

    return f


@by_hand_threads
def langevin_numba(key, x, count, steps):
    x = x.copy()
    keys = np.empty((steps, 2), np.uint32)
    for i in range(steps):
        keys[i, 0], keys[i, 1] = fold_in(key[0], key[1], i)
    for n in prange(count):
        y = x[n]
        for i in range(steps):
            y = y - f4(0.01) * (y * y - f4(1)) * y + f4(0.1) * normal(keys[i, 0], keys[i, 1], n)
        x[n] = y
    return x


NETWORK, BATCH = frozenset({"network"}), frozenset({"batch"})


def _network(rng, gates, width, *inputs):
    w, u = floats(rng, width, gates * width), floats(rng, width, gates * width)
    scale = f4(0.7 / width**0.5)
    return [w * scale, u * scale, floats(rng, gates * width) * f4(0.1), floats(rng, *inputs, width)]


RNN = Loop(
    "rnn", "recurrent network, width 64, batch 64, 100 steps", NETWORK, rnn,
    lambda rng, batch, width, steps: _network(rng, 1, width, steps, batch),
    {"batch": 64, "width": 64, "steps": 100}, {"batch": 2, "width": 3, "steps": 3}, rnn_numba, rnn_numpy,
    tolerance=1e-3,
)  # fmt: skip
LSTM = Loop(
    "lstm", "LSTM, width 16, one sequence of 500", NETWORK | {"vector"}, lstm,
    lambda rng, width, steps: _network(rng, 4, width, steps),
    {"width": 16, "steps": 500}, {"width": 2, "steps": 3}, lstm_numba, tolerance=1e-3,
)  # fmt: skip
ODES = Loop(
    "odes", "1,000 ODEs of 8 states, RK4, 50 steps", BATCH, odes,
    lambda rng, count, steps: [floats(rng, count, 8), uniform(rng, 1, 8, count)],
    {"count": 1_000, "steps": 50}, {"count": 3, "steps": 2}, odes_numba, odes_numpy, tolerance=1e-3,
)  # fmt: skip
PENDULUMS = Loop(
    "pendulums", "1,000 pendulums, 500 steps", BATCH, pendulums,
    lambda rng, count, steps: [floats(rng, count), floats(rng, count), uniform(rng, 0, 1, count)],
    {"count": 1_000, "steps": 500}, {"count": 3, "steps": 4}, pendulums_numba, pendulums_numpy, tolerance=1e-3,
)  # fmt: skip

LOOPS = [
    RNN,
    LSTM,
    ODES,
    PENDULUMS,
    Loop("langevin", "1,000 chains, a normal number each, 50 steps", BATCH | {"random"}, langevin,
         lambda rng, count, steps: [np.array([0, 4], np.uint32), floats(rng, count)],
         {"count": 1_000, "steps": 50}, {"count": 3, "steps": 4}, langevin_numba, tolerance=1e-3),
    gradient(RNN, (0, 1, 2), lambda jnp, h: jnp.sum(h[-1] ** 2)),
    gradient(LSTM, (0, 1, 2), lambda jnp, h: jnp.sum(h[-1] ** 2)),
    gradient(ODES, (0, 1), lambda jnp, x: jnp.sum(x * x)),
    gradient(PENDULUMS, (2,), lambda jnp, r: jnp.sum(r[0] ** 2)),
]  # fmt: skip

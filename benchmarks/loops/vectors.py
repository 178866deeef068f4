"""Loops over small vectors: ODEs, orbits, small iterations of matrices and vectors, gradient descent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Loop, by_hand, floats, gradient, uniform

f4 = np.float32


def rk4(jax, jnp, lax, steps):
    def f(a, start):
        def slope(x):
            return jnp.tanh(a @ x) - x

        def step(x, _):
            k1 = slope(x)
            k2 = slope(x + 0.005 * k1)
            k3 = slope(x + 0.005 * k2)
            k4 = slope(x + 0.01 * k3)
            x = x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return x, x

        return lax.scan(step, start, None, length=steps)[1]

    return f


@by_hand
def rk4_slope(a, x, out):
    n = x.size
    for i in range(n):
        total = f4(0)
        for j in range(n):
            total += a[i, j] * x[j]
        out[i] = np.tanh(total) - x[i]


@by_hand
def rk4_numba(a, start, steps):
    n = start.size
    x, t = start.copy(), np.empty_like(start)
    k1, k2, k3, k4 = np.empty_like(x), np.empty_like(x), np.empty_like(x), np.empty_like(x)
    out = np.empty((steps, n), start.dtype)
    for s in range(steps):
        rk4_slope(a, x, k1)
        for i in range(n):
            t[i] = x[i] + f4(0.005) * k1[i]
        rk4_slope(a, t, k2)
        for i in range(n):
            t[i] = x[i] + f4(0.005) * k2[i]
        rk4_slope(a, t, k3)
        for i in range(n):
            t[i] = x[i] + f4(0.01) * k3[i]
        rk4_slope(a, t, k4)
        for i in range(n):
            x[i] += f4(0.01 / 6) * (k1[i] + f4(2) * k2[i] + f4(2) * k3[i] + k4[i])
            out[s, i] = x[i]
    return out


def lorenz(jax, jnp, lax, steps):
    """Explicit Euler, the last state."""

    def f(start, parameters):
        sigma, rho, beta = parameters

        def step(state, _):
            x, y, z = state
            dx, dy, dz = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
            return state + 0.001 * jnp.stack([dx, dy, dz]), None

        return lax.scan(step, start, None, length=steps)[0]

    return f


@by_hand
def lorenz_numba(start, parameters, steps):
    sigma, rho, beta = parameters[0], parameters[1], parameters[2]
    x, y, z = start[0], start[1], start[2]
    for _ in range(steps):
        dx, dy, dz = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
        x, y, z = x + f4(0.001) * dx, y + f4(0.001) * dy, z + f4(0.001) * dz
    out = np.empty_like(start)
    out[0], out[1], out[2] = x, y, z
    return out


def leapfrog(jax, jnp, lax, steps):
    """An orbit around a fixed mass; positions and energies kept."""

    def f(position, velocity):
        def pull(q):
            return -q / jnp.sum(q * q) ** 1.5

        def step(state, _):
            q, v = state
            v = v + 0.005 * pull(q)
            q = q + 0.01 * v
            v = v + 0.005 * pull(q)
            return (q, v), (q, 0.5 * jnp.sum(v * v) - 1 / jnp.sqrt(jnp.sum(q * q)))

        return lax.scan(step, (position, velocity), None, length=steps)[1]

    return f


@by_hand
def leapfrog_numba(position, velocity, steps):
    x, y, u, v = position[0], position[1], velocity[0], velocity[1]
    path, energies = np.empty((steps, 2), position.dtype), np.empty(steps, position.dtype)
    square = x * x + y * y
    for s in range(steps):
        pull = f4(-0.005) / (square * np.sqrt(square))
        u, v = u + pull * x, v + pull * y
        x, y = x + f4(0.01) * u, y + f4(0.01) * v
        square = x * x + y * y
        pull = f4(-0.005) / (square * np.sqrt(square))
        u, v = u + pull * x, v + pull * y
        path[s, 0], path[s, 1] = x, y
        energies[s] = f4(0.5) * (u * u + v * v) - f4(1) / np.sqrt(square)
    return path, energies


def nbody(jax, jnp, lax, bodies, steps):
    def f(positions, velocities, masses):
        def pull(q):
            apart = q[None, :, :] - q[:, None, :]
            square = jnp.sum(apart * apart, axis=-1) + 0.01
            return jnp.sum(masses[None, :, None] * apart * (square**-1.5)[:, :, None], axis=1)

        def step(_, state):
            q, v, a = state
            v = v + 0.0005 * a
            q = q + 0.001 * v
            a = pull(q)
            return q, v + 0.0005 * a, a

        q, v, _ = lax.fori_loop(0, steps, step, (positions, velocities, pull(positions)))
        return q, v

    return f


@by_hand
def nbody_pull(q, masses, out):
    n = masses.size
    for i in range(n):
        ax = ay = az = f4(0)
        for j in range(n):
            x, y, z = q[j, 0] - q[i, 0], q[j, 1] - q[i, 1], q[j, 2] - q[i, 2]
            square = x * x + y * y + z * z + f4(0.01)
            pull = masses[j] / (square * np.sqrt(square))
            ax, ay, az = ax + pull * x, ay + pull * y, az + pull * z
        out[i, 0], out[i, 1], out[i, 2] = ax, ay, az


@by_hand
def nbody_numba(positions, velocities, masses, bodies, steps):
    q, v, a = positions.copy(), velocities.copy(), np.empty_like(positions)
    nbody_pull(q, masses, a)
    for _ in range(steps):
        for i in range(bodies):
            for k in range(3):
                v[i, k] += f4(0.0005) * a[i, k]
                q[i, k] += f4(0.001) * v[i, k]
        nbody_pull(q, masses, a)
        for i in range(bodies):
            for k in range(3):
                v[i, k] += f4(0.0005) * a[i, k]
    return q, v


def nbody_numpy(positions, velocities, masses, bodies, steps):
    def pull(q):
        apart = q[None, :, :] - q[:, None, :]
        square = (apart * apart).sum(-1) + f4(0.01)
        return (masses[None, :, None] * apart * (square**-1.5)[:, :, None]).sum(1)

    q, v, a = positions, velocities, pull(positions)
    for _ in range(steps):
        v = v + f4(0.0005) * a
        q = q + f4(0.001) * v
        a = pull(q)
        v = v + f4(0.0005) * a
    return q, v


def sums_of_tanh(jax, jnp, lax, steps):
    def f(start, weights):
        def step(x, _):
            x = jnp.tanh(x * weights + 0.1)
            return x, jnp.sum(x)

        return lax.scan(step, start, None, length=steps)

    return f


@by_hand
def sums_of_tanh_numba(start, weights, steps):
    x, out = start.copy(), np.empty(steps, start.dtype)
    for s in range(steps):
        total = f4(0)
        for i in range(x.size):
            x[i] = np.tanh(x[i] * weights[i] + f4(0.1))
            total += x[i]
        out[s] = total
    return x, out


def adaptive(jax, jnp, lax, limit):
    """Bogacki and Shampine's pair with step control, on van der Pol's oscillator, until time `end`."""

    def f(start, stiffness, end):
        def slope(x):
            return jnp.stack([x[1], stiffness * (1 - x[0] ** 2) * x[1] - x[0]])

        def step(state):
            time, size, x, k1, tries = state
            size = jnp.minimum(size, end - time)
            k2 = slope(x + 0.5 * size * k1)
            k3 = slope(x + 0.75 * size * k2)
            new = x + size * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
            k4 = slope(new)
            error = size * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
            ratio = jnp.max(jnp.abs(error) / (1e-5 + 1e-4 * jnp.maximum(jnp.abs(x), jnp.abs(new))))
            good = ratio <= 1
            growth = jnp.clip(0.9 * jnp.maximum(ratio, 1e-6) ** (-1 / 3), 0.2, 5)
            time = jnp.where(good, time + size, time)
            return time, size * growth, jnp.where(good, new, x), jnp.where(good, k4, k1), tries + 1

        state = (jnp.float32(0), jnp.float32(0.01), start, slope(start), 0)
        return lax.while_loop(lambda s: (s[0] < end - 1e-5) & (s[4] < limit), step, state)[2]

    return f


@by_hand
def adaptive_numba(start, stiffness, end, limit):
    x, y = start[0], start[1]
    a1, b1 = y, stiffness * (f4(1) - x * x) * y - x
    time, size, tries = f4(0), f4(0.01), 0
    while time < end - f4(1e-5) and tries < limit:
        size = min(size, end - time)
        u, v = x + f4(0.5) * size * a1, y + f4(0.5) * size * b1
        a2, b2 = v, stiffness * (f4(1) - u * u) * v - u
        u, v = x + f4(0.75) * size * a2, y + f4(0.75) * size * b2
        a3, b3 = v, stiffness * (f4(1) - u * u) * v - u
        u = x + size * (f4(2 / 9) * a1 + f4(1 / 3) * a2 + f4(4 / 9) * a3)
        v = y + size * (f4(2 / 9) * b1 + f4(1 / 3) * b2 + f4(4 / 9) * b3)
        a4, b4 = v, stiffness * (f4(1) - u * u) * v - u
        da = size * (f4(-5 / 72) * a1 + f4(1 / 12) * a2 + f4(1 / 9) * a3 - f4(1 / 8) * a4)
        db = size * (f4(-5 / 72) * b1 + f4(1 / 12) * b2 + f4(1 / 9) * b3 - f4(1 / 8) * b4)
        ratio = max(
            abs(da) / (f4(1e-5) + f4(1e-4) * max(abs(x), abs(u))),
            abs(db) / (f4(1e-5) + f4(1e-4) * max(abs(y), abs(v))),
        )
        if ratio <= 1:
            time, x, y, a1, b1 = time + size, u, v, a4, b4
        size = size * min(max(f4(0.9) * max(ratio, f4(1e-6)) ** f4(-1 / 3), f4(0.2)), f4(5))
        tries += 1
    out = np.empty_like(start)
    out[0], out[1] = x, y
    return out


def power(jax, jnp, lax, n):
    """The largest eigenvalue and its vector, until the vector changes no more."""

    def f(a, start):
        def step(state):
            x, _, k = state
            y = a @ x
            y = y / jnp.sqrt(jnp.sum(y * y))
            return y, jnp.max(jnp.abs(y - x)), k + 1

        state = (start / jnp.sqrt(jnp.sum(start * start)), jnp.float32(1), 0)
        x, _, _ = lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 1000), step, state)
        return jnp.dot(x, a @ x), x

    return f


@by_hand
def power_numba(a, start, n):
    x, y = start / np.sqrt(np.sum(start * start)), np.empty_like(start)
    change, k = f4(1), 0
    while change > f4(1e-6) and k < 1000:
        square = f4(0)
        for i in range(n):
            total = f4(0)
            for j in range(n):
                total += a[i, j] * x[j]
            y[i] = total
            square += total * total
        scale = f4(1) / np.sqrt(square)
        change = f4(0)
        for i in range(n):
            y[i] *= scale
            change = max(change, abs(y[i] - x[i]))
        x, y = y, x
        k += 1
    value = f4(0)
    for i in range(n):
        for j in range(n):
            value += x[i] * a[i, j] * x[j]
    return value, x


def power_numpy(a, start, n):
    x = start / np.sqrt(np.sum(start * start))
    for _ in range(1000):
        y = a @ x
        y /= np.sqrt(y @ y)
        change, x = np.max(np.abs(y - x)), y
        if change <= 1e-6:
            break
    return x @ (a @ x), x


def sinkhorn(jax, jnp, lax, n, rounds):
    """Optimal transport: the rows and the columns of a kernel are scaled in turns."""

    def f(cost, a, b):
        kernel = jnp.exp(cost * -5)

        def step(_, scales):
            u = a / (kernel @ scales[1])
            return u, b / (kernel.T @ u)

        return lax.fori_loop(0, rounds, step, (jnp.ones_like(a), jnp.ones_like(b)))

    return f


@by_hand
def sinkhorn_numba(cost, a, b, n, rounds):
    kernel = np.exp(cost * f4(-5))
    u, v = np.ones_like(a), np.ones_like(b)
    for _ in range(rounds):
        for i in range(n):
            total = f4(0)
            for j in range(n):
                total += kernel[i, j] * v[j]
            u[i] = a[i] / total
        v[:] = 0
        for i in range(n):
            for j in range(n):
                v[j] += kernel[i, j] * u[i]
        for j in range(n):
            v[j] = b[j] / v[j]
    return u, v


def sinkhorn_numpy(cost, a, b, n, rounds):
    kernel = np.exp(cost * f4(-5))
    v = np.ones_like(b)
    for _ in range(rounds):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
    return u, v


def adam(jax, jnp, lax, steps):
    """Rosenbrock's function of 10 numbers; its gradient is taken in the loop."""

    def f(start):
        def loss(x):
            return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

        def step(i, state):
            x, m, v = state
            g = jax.grad(loss)(x)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            t = jnp.float32(i + 1)
            return x - 0.01 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v

        return lax.fori_loop(0, steps, step, (start, jnp.zeros_like(start), jnp.zeros_like(start)))[0]

    return f


@by_hand
def adam_numba(start, steps):
    x, m, v, g = start.copy(), np.zeros_like(start), np.zeros_like(start), np.zeros_like(start)
    first, second = f4(1), f4(1)
    for _ in range(steps):
        g[:] = 0
        for k in range(x.size - 1):
            gap = x[k + 1] - x[k] * x[k]
            g[k] += f4(-400) * gap * x[k] - f4(2) * (f4(1) - x[k])
            g[k + 1] += f4(200) * gap
        first, second = first * f4(0.9), second * f4(0.999)
        for k in range(x.size):
            m[k] = f4(0.9) * m[k] + f4(0.1) * g[k]
            v[k] = f4(0.999) * v[k] + f4(0.001) * g[k] * g[k]
            x[k] -= f4(0.01) * (m[k] / (f4(1) - first)) / (np.sqrt(v[k] / (f4(1) - second)) + f4(1e-8))
    return x


VECTOR = frozenset({"vector"})


def _symmetric(rng, n):
    x = floats(rng, n, n)
    return (x + x.T) / f4(n) + np.eye(n, dtype=np.float32)


def _weights(rng, n):
    w = uniform(rng, 0.5, 1.5, n)
    return w / w.sum()


RK4 = Loop(
    "rk4", "RK4, state 8, tanh(A @ x) - x, 10,000 steps kept", VECTOR, rk4,
    lambda rng, steps: [floats(rng, 8, 8) * f4(0.6), floats(rng, 8)], {"steps": 10_000}, {"steps": 4}, rk4_numba,
)  # fmt: skip
LORENZ = Loop(
    "lorenz", "Lorenz's system, Euler, 5,000 steps", VECTOR, lorenz,
    lambda rng, steps: [np.array([1, 2, 20], np.float32), np.array([10, 28, 8 / 3], np.float32)],
    {"steps": 5_000}, {"steps": 6}, lorenz_numba, tolerance=1e-3,
)  # fmt: skip
# With rho = 28 the system is chaotic: differences grow by e each time unit, so that gradients of peers that round
# differently have nothing in common. Below 24 it comes to rest; the program is the same.
CALM_LORENZ = replace(
    LORENZ, title="Lorenz's system, rho = 14, Euler, 5,000 steps",
    arguments=lambda rng, steps: [np.array([1, 2, 20], np.float32), np.array([10, 14, 8 / 3], np.float32)],
)  # fmt: skip
LEAPFROG = Loop(
    "leapfrog", "leapfrog of an orbit, 10,000 steps kept", VECTOR, leapfrog,
    lambda rng, steps: [np.array([1, 0], np.float32), np.array([0, 1.1], np.float32)],
    {"steps": 10_000}, {"steps": 6}, leapfrog_numba, tolerance=1e-2,
)  # fmt: skip
NBODY = Loop(
    "nbody", "leapfrog of 16 bodies, 300 steps", VECTOR, nbody,
    lambda rng, bodies, steps: [floats(rng, bodies, 3), floats(rng, bodies, 3) * f4(0.1), uniform(rng, 0.5, 1, bodies)],
    {"bodies": 16, "steps": 300}, {"bodies": 3, "steps": 3}, nbody_numba, nbody_numpy,
)  # fmt: skip
SINKHORN = Loop(
    "sinkhorn", "Sinkhorn's scaling of a 64x64 kernel, 200 rounds", VECTOR, sinkhorn,
    lambda rng, n, rounds: [rng.random((n, n), np.float32), _weights(rng, n), _weights(rng, n)],
    {"n": 64, "rounds": 200}, {"n": 4, "rounds": 3}, sinkhorn_numba, sinkhorn_numpy,
)  # fmt: skip

LOOPS = [
    RK4,
    LORENZ,
    LEAPFROG,
    NBODY,
    Loop("sums-of-tanh", "tanh of 16 values and their sum, 10,000 steps", VECTOR, sums_of_tanh,
         lambda rng, steps: [floats(rng, 16), floats(rng, 16)],
         {"steps": 10_000}, {"steps": 4}, sums_of_tanh_numba),
    Loop("adaptive", "adaptive Runge-Kutta of van der Pol's oscillator, while", VECTOR | {"while"}, adaptive,
         lambda rng, limit: [np.array([2, 0], np.float32), f4(5), f4(limit / 50)],
         {"limit": 10_000}, {"limit": 40}, adaptive_numba, tolerance=1e-2),
    Loop("power", "power iteration of a 32x32 matrix, while", VECTOR | {"while"}, power,
         lambda rng, n: [_symmetric(rng, n), floats(rng, n)], {"n": 32}, {"n": 4}, power_numba, power_numpy,
         tolerance=1e-3),
    SINKHORN,
    Loop("adam", "Adam on Rosenbrock's function of 10 numbers, gradient in the loop, 2,000 steps", VECTOR, adam,
         lambda rng, steps: [floats(rng, 10)], {"steps": 2_000}, {"steps": 3}, adam_numba, tolerance=1e-2),
    gradient(RK4, (0, 1), lambda jnp, x: jnp.sum(x * x)),
    gradient(CALM_LORENZ, (0, 1), lambda jnp, x: jnp.sum(x)),
    gradient(LEAPFROG, (0, 1), lambda jnp, r: jnp.sum(r[1] * r[1]), steps=2_000),
    gradient(NBODY, (0, 2), lambda jnp, r: jnp.sum(r[0] * r[0])),
    gradient(SINKHORN, (0,), lambda jnp, r: jnp.sum(r[0] * r[0]) + jnp.sum(r[1])),
]  # fmt: skip

"""Loops over whole grids: partial differential equations and pictures."""

from __future__ import annotations

import numpy as np
from numba import prange

from .case import Loop, by_hand, by_hand_threads, floats, gradient

f4 = np.float32


def heat(jax, jnp, lax, n, steps):
    def f(u):
        def step(_, u):
            inner = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            return u.at[1:-1, 1:-1].set(inner + 0.1 * (around - 4 * inner))

        return lax.fori_loop(0, steps, step, u)

    return f


@by_hand
def heat_numba(u, n, steps):
    u, new = u.copy(), u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                new[i, j] = u[i, j] + f4(0.1) * (around - f4(4) * u[i, j])
        u, new = new, u
    return u


def heat_numpy(u, n, steps):
    u = u.copy()
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = inner + f4(0.1) * (around - 4 * inner)
    return u


def poisson(jax, jnp, lax, n):
    """Jacobi's iteration until nothing changes by more than 1e-4."""

    def f(source):
        def step(state):
            u, _, k = state
            new = 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) + source)
            new = new - jnp.mean(new)
            return new, jnp.max(jnp.abs(new - u)), k + 1

        state = (jnp.zeros_like(source), jnp.float32(1), 0)
        return lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < 1000), step, state)[0]

    return f


@by_hand
def poisson_numba(source, n):
    u, new = np.zeros_like(source), np.empty_like(source)
    change, k = f4(1), 0
    while change > f4(1e-3) and k < 1000:
        total = f4(0)
        for i in range(n):
            up, down = (i + n - 1) % n, (i + 1) % n
            for j in range(n):
                left, right = j - 1 if j > 0 else n - 1, j + 1 if j < n - 1 else 0
                new[i, j] = f4(0.25) * (u[up, j] + u[down, j] + u[i, left] + u[i, right] + source[i, j])
                total += new[i, j]
        mean = total / f4(n * n)
        change = f4(0)
        for i in range(n):
            for j in range(n):
                new[i, j] -= mean
                change = max(change, abs(new[i, j] - u[i, j]))
        u, new = new, u
        k += 1
    return u


def poisson_numpy(source, n):
    u = np.zeros_like(source)
    for _ in range(1000):
        new = f4(0.25) * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) + source)
        new -= new.mean()
        change, u = np.max(np.abs(new - u)), new
        if change <= 1e-3:
            break
    return u


def burgers(jax, jnp, lax, cells, steps):
    """Burgers' equation on a ring, upwind fluxes and some diffusion."""

    def f(u):
        def step(_, u):
            flux = 0.5 * jnp.where(u > 0, u * u, jnp.roll(u, -1) ** 2)
            change = flux - jnp.roll(flux, 1)
            return u - 0.2 * change + 0.05 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1))

        return lax.fori_loop(0, steps, step, u)

    return f


@by_hand
def burgers_numba(u, cells, steps):
    u, flux, new = u.copy(), np.empty_like(u), np.empty_like(u)
    last = cells - 1
    for _ in range(steps):
        for i in range(cells):
            right = u[i + 1 if i < last else 0]
            flux[i] = f4(0.5) * (u[i] * u[i] if u[i] > 0 else right * right)
        for i in range(cells):
            left, right = i - 1 if i > 0 else last, i + 1 if i < last else 0
            change = flux[i] - flux[left]
            new[i] = u[i] - f4(0.2) * change + f4(0.05) * (u[left] - f4(2) * u[i] + u[right])
        u, new = new, u
    return u


def burgers_numpy(u, cells, steps):
    for _ in range(steps):
        flux = f4(0.5) * np.where(u > 0, u * u, np.roll(u, -1) ** 2)
        u = u - f4(0.2) * (flux - np.roll(flux, 1)) + f4(0.05) * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


def mandelbrot(jax, jnp, lax, n, steps):
    def f(c):
        def step(_, state):
            z, count = state
            inside = (z.real * z.real + z.imag * z.imag) < 4
            return jnp.where(inside, z * z + c, z), count + inside

        return lax.fori_loop(0, steps, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]

    return f


@by_hand_threads
def mandelbrot_numba(c, n, steps):
    out = np.empty((n, n), np.int32)
    for i in prange(n):
        for j in range(n):
            x = y = f4(0)
            count = 0
            while count < steps and x * x + y * y < f4(4):
                x, y = x * x - y * y + c[i, j].real, f4(2) * x * y + c[i, j].imag
                count += 1
            out[i, j] = count
    return out


def mandelbrot_numpy(c, n, steps):
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(steps):
        inside = z.real * z.real + z.imag * z.imag < 4
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def _plane(rng, n, steps):
    x, y = np.linspace(-2, 0.5, n, dtype=np.float32), np.linspace(-1.2, 1.2, n, dtype=np.float32)
    return [(x[None, :] + 1j * y[:, None]).astype(np.complex64)]


GRID = frozenset({"grid"})

HEAT = Loop(
    "heat", "heat equation, 256x256, 500 steps", GRID, heat, lambda rng, n, steps: [floats(rng, n, n)],
    {"n": 256, "steps": 500}, {"n": 5, "steps": 3}, heat_numba, heat_numpy,
)  # fmt: skip
BURGERS = Loop(
    "burgers", "Burgers' equation, 512 cells, 1,000 steps", GRID, burgers,
    lambda rng, cells, steps: [(0.3 + np.sin(np.arange(cells) * 2 * np.pi / cells)).astype(np.float32)],
    {"cells": 512, "steps": 1_000}, {"cells": 7, "steps": 3}, burgers_numba, burgers_numpy,
)  # fmt: skip

LOOPS = [
    HEAT,
    Loop("poisson", "Jacobi's iteration, 64x64, while it changes", GRID | {"while"}, poisson,
         lambda rng, n: [floats(rng, n, n)], {"n": 64}, {"n": 5}, poisson_numba, poisson_numpy, tolerance=1e-3),
    BURGERS,
    Loop("mandelbrot", "Mandelbrot's set, 300x300 complex, 100 steps", GRID, mandelbrot, _plane,
         {"n": 300, "steps": 100}, {"n": 5, "steps": 9}, mandelbrot_numba, mandelbrot_numpy, tolerance=1e-2,
         compared=lambda counts: np.asarray(counts).sum(0)),
    gradient(HEAT, (0,), lambda jnp, u: jnp.sum(u * u), n=64, steps=200),
    gradient(BURGERS, (0,), lambda jnp, u: jnp.sum(u * u), steps=300),
]  # fmt: skip

"""Loops that write a row, a column or an element of an array and read other places of it."""

from __future__ import annotations

import numpy as np

from .case import Loop, by_hand, floats, gradient
from .keys import fold_in, unit

f4 = np.float32


def columns(jax, jnp, lax, height, width):
    def f(a):
        def step(j, a):
            return a.at[:, j].set(0.5 * a[:, j - 1] + 0.25 * a[:, j - 2])

        return lax.fori_loop(2, width, step, a)

    return f


@by_hand
def columns_numba(a, height, width):
    a = a.copy()
    for i in range(height):
        for j in range(2, width):
            a[i, j] = f4(0.5) * a[i, j - 1] + f4(0.25) * a[i, j - 2]
    return a


def columns_numpy(a, height, width):
    a = a.copy()
    for j in range(2, width):
        a[:, j] = f4(0.5) * a[:, j - 1] + f4(0.25) * a[:, j - 2]
    return a


def rows(jax, jnp, lax, height, width):
    def f(a):
        def step(i, a):
            return a.at[i].set(0.5 * a[i - 1] + 0.25 * a[i - 2])

        return lax.fori_loop(2, height, step, a)

    return f


@by_hand
def rows_numba(a, height, width):
    a = a.copy()
    for i in range(2, height):
        for j in range(width):
            a[i, j] = f4(0.5) * a[i - 1, j] + f4(0.25) * a[i - 2, j]
    return a


def rows_numpy(a, height, width):
    a = a.copy()
    for i in range(2, height):
        a[i] = f4(0.5) * a[i - 1] + f4(0.25) * a[i - 2]
    return a


def elements(jax, jnp, lax, count):
    """Integers; each element from the two before it."""

    def f(x):
        return lax.fori_loop(2, count, lambda i, x: x.at[i].set((x[i - 1] + x[i - 2]) % 1000), x)

    return f


@by_hand
def elements_numba(x, count):
    x = x.copy()
    for i in range(2, count):
        x[i] = (x[i - 1] + x[i - 2]) % 1000
    return x


LAGS = 8


def lagged(jax, jnp, lax, count):
    """An autoregressive series: each element from a window of those before it, and noise."""

    def f(noise, weights):
        def step(i, x):
            window = lax.dynamic_slice(x, (i - LAGS,), (LAGS,))
            return x.at[i].add(jnp.dot(weights, window))

        return lax.fori_loop(LAGS, count, step, noise)

    return f


@by_hand
def lagged_numba(noise, weights, count):
    x = noise.copy()
    for i in range(LAGS, count):
        total = f4(0)
        for k in range(LAGS):
            total += weights[k] * x[i - LAGS + k]
        x[i] += total
    return x


def gauss_seidel(jax, jnp, lax, n, sweeps):
    def f(u, source):
        def element(i, j, u):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            return u.at[i, j].set(0.25 * (around - source[i, j]))

        def row(i, u):
            return lax.fori_loop(1, n - 1, lambda j, u: element(i, j, u), u)

        return lax.fori_loop(0, sweeps, lambda _, u: lax.fori_loop(1, n - 1, row, u), u)

    return f


@by_hand
def gauss_seidel_numba(u, source, n, sweeps):
    u = u.copy()
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                u[i, j] = f4(0.25) * (around - source[i, j])
    return u


def sieve(jax, jnp, lax, limit):
    """Eratosthenes: the multiples of each prime are struck out one by one."""
    root = int(limit**0.5) + 1

    def f(start):
        def strike(i, prime):
            def multiple(state):
                j, prime = state
                return j + i, prime.at[j].set(False)

            return lax.while_loop(lambda state: state[0] < limit, multiple, (i * i, prime))[1]

        def number(i, prime):
            return lax.cond(prime[i], lambda p: strike(i, p), lambda p: p, prime)

        return lax.fori_loop(2, root, number, start)

    return f


@by_hand
def sieve_numba(start, limit):
    prime = start.copy()
    for i in range(2, int(limit**0.5) + 1):
        if prime[i]:
            for j in range(i * i, limit, i):
                prime[j] = False
    return prime


def sieve_numpy(start, limit):
    prime = start.copy()
    for i in range(2, int(limit**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return prime


def insertion_sort(jax, jnp, lax, count):
    def f(x):
        def insert(i, x):
            def swap(state):
                j, x = state
                above, below = x[j - 1], x[j]
                return j - 1, x.at[j].set(above).at[j - 1].set(below)

            def unsorted(state):
                j, x = state
                return (j > 0) & (x[jnp.maximum(j - 1, 0)] > x[j])

            return lax.while_loop(unsorted, swap, (i, x))[1]

        return lax.fori_loop(1, count, insert, x)

    return f


@by_hand
def insertion_sort_numba(x, count):
    x = x.copy()
    for i in range(1, count):
        j = i
        while j > 0 and x[j - 1] > x[j]:
            x[j - 1], x[j] = x[j], x[j - 1]
            j -= 1
    return x


def shuffle(jax, jnp, lax, count):
    """Fisher and Yates: each step swaps two elements, one of them drawn."""

    def f(x, key):
        key = jax.random.wrap_key_data(key)

        def step(k, x):
            i = count - 1 - k
            drawn = jax.random.uniform(jax.random.fold_in(key, k))
            j = jnp.minimum((drawn * (i + 1)).astype(jnp.int32), i)
            one, other = x[i], x[j]
            return x.at[i].set(other).at[j].set(one)

        return lax.fori_loop(0, count - 1, step, x)

    return f


@by_hand
def shuffle_numba(x, key, count):
    x = x.copy()
    for k in range(count - 1):
        i = count - 1 - k
        first, second = fold_in(key[0], key[1], k)
        j = min(int(unit(first, second, 0) * f4(i + 1)), i)
        x[i], x[j] = x[j], x[i]
    return x


def automaton(jax, jnp, lax, height, width):
    """Rule 110; each row of the picture from the one above it."""

    def f(first, rule):
        def step(t, picture):
            cells = picture[t - 1]
            code = 4 * jnp.roll(cells, 1) + 2 * cells + jnp.roll(cells, -1)
            return picture.at[t].set((rule >> code) & 1)

        picture = jnp.zeros((height, width), jnp.int32).at[0].set(first)
        return lax.fori_loop(1, height, step, picture)

    return f


@by_hand
def automaton_numba(first, rule, height, width):
    picture = np.zeros((height, width), np.int32)
    picture[0] = first
    for t in range(1, height):
        for j in range(width):
            right = picture[t - 1, j + 1 if j + 1 < width else 0]
            code = 4 * picture[t - 1, j - 1] + 2 * picture[t - 1, j] + right
            picture[t, j] = (rule >> code) & 1
    return picture


def automaton_numpy(first, rule, height, width):
    picture = np.zeros((height, width), np.int32)
    picture[0] = first
    for t in range(1, height):
        cells = picture[t - 1]
        picture[t] = (rule >> (4 * np.roll(cells, 1) + 2 * cells + np.roll(cells, -1))) & 1
    return picture


BINS = 64


def histogram(jax, jnp, lax, count):
    def f(x):
        def step(i, counts):
            place = jnp.clip((x[i] * BINS).astype(jnp.int32), 0, BINS - 1)
            return counts.at[place].add(1)

        return lax.fori_loop(0, count, step, jnp.zeros(BINS, jnp.int32))

    return f


@by_hand
def histogram_numba(x, count):
    counts = np.zeros(BINS, np.int32)
    for i in range(count):
        counts[min(max(int(x[i] * f4(BINS)), 0), BINS - 1)] += 1
    return counts


def histogram_numpy(x, count):
    return np.bincount(np.clip((x * BINS).astype(np.int32), 0, BINS - 1), minlength=BINS)


IN_PLACE = frozenset({"in place"})
KEY = np.array([0, 3], np.uint32)

COLUMNS = Loop(
    "columns", "each column from the two before it, 200x300", IN_PLACE, columns,
    lambda rng, height, width: [floats(rng, height, width)],
    {"height": 200, "width": 300}, {"height": 3, "width": 5}, columns_numba, columns_numpy,
)  # fmt: skip

LOOPS = [
    COLUMNS,
    Loop("rows", "each row from the two before it, 300x200", IN_PLACE, rows,
         lambda rng, height, width: [floats(rng, height, width)],
         {"height": 300, "width": 200}, {"height": 5, "width": 3}, rows_numba, rows_numpy),
    Loop("elements", "each element from the two before it, 20,000 integers", IN_PLACE, elements,
         lambda rng, count: [rng.integers(0, 1000, count).astype(np.int32)],
         {"count": 20_000}, {"count": 9}, elements_numba),
    Loop("lagged", "autoregression: each element from a window of 8, 10,000 elements", IN_PLACE, lagged,
         lambda rng, count: [floats(rng, count), floats(rng, LAGS) * f4(0.1)],
         {"count": 10_000}, {"count": 12}, lagged_numba),
    Loop("gauss-seidel", "Gauss-Seidel by single elements, 40x40, 5 sweeps", IN_PLACE, gauss_seidel,
         lambda rng, n, sweeps: [floats(rng, n, n), floats(rng, n, n) * f4(0.01)],
         {"n": 40, "sweeps": 5}, {"n": 5, "sweeps": 2}, gauss_seidel_numba),
    Loop("sieve", "sieve of Eratosthenes up to 20,000", IN_PLACE | {"while"}, sieve,
         lambda rng, limit: [np.arange(limit) > 1], {"limit": 20_000}, {"limit": 30}, sieve_numba, sieve_numpy),
    Loop("insertion-sort", "insertion sort by swaps, 200 numbers", IN_PLACE | {"while"}, insertion_sort,
         lambda rng, count: [floats(rng, count)], {"count": 200}, {"count": 7}, insertion_sort_numba),
    Loop("shuffle", "shuffle by swaps, a key a step, 5,000 integers", IN_PLACE | {"random"}, shuffle,
         lambda rng, count: [np.arange(count, dtype=np.int32), KEY],
         {"count": 5_000}, {"count": 7}, shuffle_numba),
    Loop("automaton", "cellular automaton, rule 110, 256 rows of 256 cells", IN_PLACE, automaton,
         lambda rng, height, width: [rng.integers(0, 2, width).astype(np.int32), np.int32(110)],
         {"height": 256, "width": 256}, {"height": 4, "width": 7}, automaton_numba, automaton_numpy),
    Loop("histogram", "counts in 64 bins, one element a step, 20,000 numbers", IN_PLACE, histogram,
         lambda rng, count: [rng.random(count, np.float32)],
         {"count": 20_000}, {"count": 9}, histogram_numba, histogram_numpy),
    gradient(COLUMNS, (0,), lambda jnp, a: jnp.sum(a * a)),
]  # fmt: skip

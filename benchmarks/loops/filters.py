"""Filters of noisy observations: Kalman filter and smoother, hidden Markov model, particle filter."""

from __future__ import annotations

import numpy as np

from .case import Loop, by_hand, floats, gradient, uniform
from .keys import fold_in, normal, unit

f4 = np.float32


def kalman(jax, jnp, lax, steps):
    """Four states, two observed; means and the logarithm of the likelihood."""

    def f(move, observe, q, r, seen):
        def step(state, z):
            x, p, likelihood = state
            x, p = move @ x, move @ p @ move.T + q
            y = z - observe @ x
            s = observe @ p @ observe.T + r
            size = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            inverse = jnp.stack([jnp.stack([s[1, 1], -s[0, 1]]), jnp.stack([-s[1, 0], s[0, 0]])]) / size
            gain = p @ observe.T @ inverse
            x, p = x + gain @ y, p - gain @ observe @ p
            likelihood = likelihood - 0.5 * (jnp.dot(y, inverse @ y) + jnp.log(size))
            return (x, p, likelihood), x

        start = (jnp.zeros(4, jnp.float32), jnp.eye(4, dtype=jnp.float32), jnp.float32(0))
        (_, _, likelihood), means = lax.scan(step, start, seen)
        return means, likelihood

    return f


@by_hand
def product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = f4(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@by_hand
def kalman_numba(move, observe, q, r, seen, steps):
    x, p = np.zeros(4, seen.dtype), np.eye(4).astype(seen.dtype)
    new, t, u, w = np.zeros(4, seen.dtype), np.empty_like(p), np.empty_like(p), np.empty((2, 4), seen.dtype)
    s, gain, y = np.empty((2, 2), seen.dtype), np.empty((4, 2), seen.dtype), np.empty(2, seen.dtype)
    likelihood = f4(0)
    means = np.empty((steps, 4), seen.dtype)
    for step in range(steps):
        for i in range(4):
            total = f4(0)
            for j in range(4):
                total += move[i, j] * x[j]
            new[i] = total
        product(move, p, t)
        product(t, move.T, u)
        for i in range(4):
            for j in range(4):
                p[i, j] = u[i, j] + q[i, j]
        product(observe, p, w)
        product(w, observe.T, s)
        for i in range(2):
            total = seen[step, i]
            for j in range(4):
                total -= observe[i, j] * new[j]
            y[i] = total
            for j in range(2):
                s[i, j] += r[i, j]
        size = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        a, b, c, d = s[1, 1] / size, -s[0, 1] / size, -s[1, 0] / size, s[0, 0] / size
        for i in range(4):
            gain[i, 0] = w[0, i] * a + w[1, i] * c
            gain[i, 1] = w[0, i] * b + w[1, i] * d
            x[i] = new[i] + gain[i, 0] * y[0] + gain[i, 1] * y[1]
            means[step, i] = x[i]
        for i in range(4):
            for j in range(4):
                p[i, j] -= gain[i, 0] * w[0, j] + gain[i, 1] * w[1, j]
        fit = y[0] * (a * y[0] + b * y[1]) + y[1] * (c * y[0] + d * y[1])
        likelihood -= f4(0.5) * (fit + np.log(size))
    return means, likelihood


def kalman_numpy(move, observe, q, r, seen, steps):
    x, p, likelihood, means = np.zeros(4, np.float32), np.eye(4, dtype=np.float32), f4(0), []
    for z in seen:
        x, p = move @ x, move @ p @ move.T + q
        y, s = z - observe @ x, observe @ p @ observe.T + r
        size = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = np.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / size
        gain = p @ observe.T @ inverse
        x, p = x + gain @ y, p - gain @ observe @ p
        likelihood -= f4(0.5) * (y @ inverse @ y + np.log(size))
        means.append(x)
    return np.array(means), likelihood


def smoother(jax, jnp, lax, steps):
    """Rauch, Tung and Striebel: a filter of position and speed, and then back over all of its states."""

    def f(move, q, r, seen):
        def forward(state, z):
            x, p = state
            guess, spread = move @ x, move @ p @ move.T + q
            gain = spread[:, 0] / (spread[0, 0] + r)
            x, p = guess + gain * (z - guess[0]), spread - jnp.outer(gain, spread[0])
            return (x, p), (guess, spread, x, p)

        start = (jnp.zeros(2, jnp.float32), jnp.eye(2, dtype=jnp.float32))
        last, kept = lax.scan(forward, start, seen)

        def backward(state, at):
            later, later_p, guess, spread = state
            _, _, x, p = at
            size = spread[0, 0] * spread[1, 1] - spread[0, 1] * spread[1, 0]
            inverse = jnp.array([[spread[1, 1], -spread[0, 1]], [-spread[1, 0], spread[0, 0]]]) / size
            gain = p @ move.T @ inverse
            x, p = x + gain @ (later - guess), p + gain @ (later_p - spread) @ gain.T
            return (x, p, at[0], at[1]), (x, p)

        final = (last[0], last[1], kept[0][-1], kept[1][-1])
        _, (means, spreads) = lax.scan(backward, final, tuple(k[:-1] for k in kept), reverse=True)
        return means, spreads

    return f


@by_hand
def smoother_numba(move, q, r, seen, steps):
    dtype = seen.dtype
    x, p, t, u = np.zeros(2, dtype), np.eye(2).astype(dtype), np.empty((2, 2), dtype), np.empty((2, 2), dtype)
    guesses, spreads = np.empty((steps, 2), dtype), np.empty((steps, 2, 2), dtype)
    means, covers = np.empty((steps, 2), dtype), np.empty((steps, 2, 2), dtype)
    for step in range(steps):
        guess, spread = guesses[step], spreads[step]
        for i in range(2):
            guess[i] = move[i, 0] * x[0] + move[i, 1] * x[1]
        product(move, p, t)
        product(t, move.T, spread)
        for i in range(2):
            for j in range(2):
                spread[i, j] += q[i, j]
        scale = f4(1) / (spread[0, 0] + r)
        error = seen[step] - guess[0]
        for i in range(2):
            gain = spread[i, 0] * scale
            x[i] = guess[i] + gain * error
            means[step, i] = x[i]
            for j in range(2):
                p[i, j] = spread[i, j] - gain * spread[0, j]
                covers[step, i, j] = p[i, j]
    inverse, gains = np.empty((2, 2), dtype), np.empty((2, 2), dtype)
    for step in range(steps - 2, -1, -1):
        spread = spreads[step + 1]
        size = spread[0, 0] * spread[1, 1] - spread[0, 1] * spread[1, 0]
        inverse[0, 0], inverse[0, 1] = spread[1, 1] / size, -spread[0, 1] / size
        inverse[1, 0], inverse[1, 1] = -spread[1, 0] / size, spread[0, 0] / size
        product(covers[step], move.T, t)
        product(t, inverse, gains)
        for i in range(2):
            for j in range(2):
                means[step, i] += gains[i, j] * (means[step + 1, j] - guesses[step + 1, j])
                u[i, j] = covers[step + 1, i, j] - spread[i, j]
        product(gains, u, t)
        product(t, gains.T, u)
        for i in range(2):
            for j in range(2):
                covers[step, i, j] += u[i, j]
    return means[:-1], covers[:-1]


STATES = 16


def hidden_markov(jax, jnp, lax, steps):
    """Scaled forward and backward passes; the probabilities of the states, and the likelihood's logarithm."""

    def f(start, moves, chances):
        def forward(before, chance):
            now = (before @ moves) * chance
            total = jnp.sum(now)
            now = now / total
            return now, (now, jnp.log(total))

        first = start * chances[0]
        scale = jnp.sum(first)
        _, (ahead, logs) = lax.scan(forward, first / scale, chances[1:])
        ahead = jnp.concatenate([(first / scale)[None], ahead])

        def backward(after, chance):
            now = moves @ (after * chance)
            now = now / jnp.sum(now)
            return now, now

        _, behind = lax.scan(backward, jnp.ones(STATES, jnp.float32), chances[1:], reverse=True)
        both = ahead * jnp.concatenate([behind, jnp.ones((1, STATES), jnp.float32)])
        return both / jnp.sum(both, axis=1, keepdims=True), jnp.log(scale) + jnp.sum(logs)

    return f


@by_hand
def hidden_markov_numba(start, moves, chances, steps):
    n = start.size
    ahead = np.empty((steps, n), start.dtype)
    behind, new = np.ones(n, start.dtype), np.empty(n, start.dtype)
    likelihood = f4(0)
    for t in range(steps):
        if t == 0:
            for j in range(n):
                ahead[0, j] = start[j]
        else:
            ahead[t] = 0
            for i in range(n):
                for j in range(n):
                    ahead[t, j] += ahead[t - 1, i] * moves[i, j]
        total = f4(0)
        for j in range(n):
            ahead[t, j] *= chances[t, j]
            total += ahead[t, j]
        likelihood += np.log(total)
        for j in range(n):
            ahead[t, j] /= total
    for t in range(steps - 2, -1, -1):
        total = f4(0)
        for i in range(n):
            now = f4(0)
            for j in range(n):
                now += moves[i, j] * behind[j] * chances[t + 1, j]
            new[i] = now
            total += now
        both = f4(0)
        for i in range(n):
            new[i] /= total
            ahead[t, i] *= new[i]
            both += ahead[t, i]
        for i in range(n):
            ahead[t, i] /= both
        behind, new = new, behind
    return ahead, likelihood


def hidden_markov_numpy(start, moves, chances, steps):
    ahead, likelihood, behind = np.empty_like(chances), f4(0), np.ones_like(start)
    for t in range(steps):
        now = (ahead[t - 1] @ moves if t else start) * chances[t]
        total = now.sum()
        ahead[t] = now / total
        likelihood += np.log(total)
    for t in range(steps - 2, -1, -1):
        behind = moves @ (behind * chances[t + 1])
        behind /= behind.sum()
        ahead[t] *= behind
    return ahead / ahead.sum(1, keepdims=True), likelihood


def particles(jax, jnp, lax, count, steps):
    """A bootstrap filter; systematic resampling finds each particle's parent by bisection of the summed weights."""
    rounds = max(1, (count - 1).bit_length())

    def f(key, seen):
        key = jax.random.wrap_key_data(key)

        def step(x, at):
            i, z = at
            one, two = jax.random.split(jax.random.fold_in(key, i))
            x = 0.8 * x + 0.5 * jax.random.normal(one, (count,))
            weights = jnp.exp(-0.5 * (z - x) ** 2)
            edges = jnp.cumsum(weights)
            mean = jnp.sum(weights * x) / edges[-1]
            places = (jnp.arange(count) + jax.random.uniform(two)) * (edges[-1] / count)

            def parent(place):
                def halve(_, bounds):
                    low, high = bounds
                    middle = (low + high) // 2
                    above = edges[middle] < place
                    return jnp.where(above, middle + 1, low), jnp.where(above, high, middle)

                return x[lax.fori_loop(0, rounds, halve, (0, count - 1))[0]]

            return lax.map(parent, places), mean

        start = jax.random.normal(jax.random.fold_in(key, steps), (count,))
        return lax.scan(step, start, (jnp.arange(steps), seen))[1]

    return f


@by_hand
def particles_numba(key, seen, count, steps):
    x, new, edges = np.empty(count, np.float32), np.empty(count, np.float32), np.empty(count, np.float32)
    means = np.empty(steps, np.float32)
    a, b = fold_in(key[0], key[1], steps)
    for k in range(count):
        x[k] = normal(a, b, k)
    for i in range(steps):
        a, b = fold_in(key[0], key[1], i)
        c, d = fold_in(a, b, 0)
        e, g = fold_in(a, b, 1)
        total = mean = f4(0)
        for k in range(count):
            x[k] = f4(0.8) * x[k] + f4(0.5) * normal(c, d, k)
            weight = np.exp(f4(-0.5) * (seen[i] - x[k]) ** 2)
            total += weight
            mean += weight * x[k]
            edges[k] = total
        means[i] = mean / total
        drawn, width, j = unit(e, g, 0), total / f4(count), 0
        for k in range(count):
            place = (f4(k) + drawn) * width
            while j < count - 1 and edges[j] < place:
                j += 1
            new[k] = x[j]
        x, new = new, x
    return means


def particles_pointer(jax, jnp, lax, count, steps):
    """The same filter; resampling goes along both rows with a while in a loop, and writes element by element."""

    def f(key, seen):
        key = jax.random.wrap_key_data(key)

        def step(x, at):
            i, z = at
            one, two = jax.random.split(jax.random.fold_in(key, i))
            x = 0.8 * x + 0.5 * jax.random.normal(one, (count,))
            weights = jnp.exp(-0.5 * (z - x) ** 2)
            edges = jnp.cumsum(weights)
            mean = jnp.sum(weights * x) / edges[-1]
            drawn, width = jax.random.uniform(two), edges[-1] / count

            def choose(k, state):
                j, new = state
                place = (k + drawn) * width
                j = lax.while_loop(lambda j: (j < count - 1) & (edges[j] < place), lambda j: j + 1, j)
                return j, new.at[k].set(x[j])

            return lax.fori_loop(0, count, choose, (0, x))[1], mean

        start = jax.random.normal(jax.random.fold_in(key, steps), (count,))
        return lax.scan(step, start, (jnp.arange(steps), seen))[1]

    return f


FILTER = frozenset({"filter"})
KEY = np.array([0, 5], np.uint32)


def _tracking(rng, steps):
    move, observe = np.eye(4, dtype=np.float32), np.eye(2, 4, dtype=np.float32)
    move[0, 2] = move[1, 3] = 0.1
    noise = np.eye(4, dtype=np.float32) * f4(0.01)
    seen = np.cumsum(floats(rng, steps, 2) * f4(0.1), axis=0, dtype=np.float32) + floats(rng, steps, 2) * f4(0.3)
    return [move * f4(0.99), observe, noise, np.eye(2, dtype=np.float32) * f4(0.1), seen]


def _smoothing(rng, steps):
    move = np.array([[1, 0.1], [0, 0.98]], np.float32)
    seen = np.cumsum(floats(rng, steps) * f4(0.1), dtype=np.float32) + floats(rng, steps) * f4(0.3)
    return [move, np.eye(2, dtype=np.float32) * f4(0.05), f4(0.1), seen]


def _first(means):
    """The compared part of the result: rounding may choose another parent once in some dozens of steps."""
    return np.asarray(means)[:20], np.std(means)


def _chances(rng, *dimensions):
    x = uniform(rng, 0.1, 1, *dimensions)
    return x / x.sum(-1, keepdims=True)


KALMAN = Loop(
    "kalman", "Kalman filter, 4 states, 2 observed, 1,000 steps", FILTER, kalman, _tracking,
    {"steps": 1_000}, {"steps": 4}, kalman_numba, kalman_numpy, tolerance=1e-3,
)  # fmt: skip
HIDDEN_MARKOV = Loop(
    "hidden-markov", "hidden Markov model, 16 states, forward and backward, 500 steps", FILTER, hidden_markov,
    lambda rng, steps: [_chances(rng, STATES), _chances(rng, STATES, STATES), uniform(rng, 0.01, 1, steps, STATES)],
    {"steps": 500}, {"steps": 4}, hidden_markov_numba, hidden_markov_numpy, tolerance=1e-3,
)  # fmt: skip

LOOPS = [
    KALMAN,
    Loop("smoother", "Kalman smoother, 2 states, 1,000 steps there and back", FILTER, smoother, _smoothing,
         {"steps": 1_000}, {"steps": 4}, smoother_numba, tolerance=1e-3),
    HIDDEN_MARKOV,
    Loop("particles", "particle filter, 256 particles, parents by bisection, 100 steps", FILTER | {"random"}, particles,
         lambda rng, count, steps: [KEY, floats(rng, steps)],
         {"count": 256, "steps": 100}, {"count": 5, "steps": 3}, particles_numba, tolerance=2e-2,
         compared=_first),
    Loop("particles-pointer", "particle filter, parents one after the other, 100 steps",
         FILTER | {"random", "in place", "while"}, particles_pointer,
         lambda rng, count, steps: [KEY, floats(rng, steps)],
         {"count": 256, "steps": 100}, {"count": 5, "steps": 3}, particles_numba, tolerance=2e-2,
         compared=_first),
    gradient(KALMAN, (0, 4), lambda jnp, r: r[1]),
    gradient(HIDDEN_MARKOV, (0, 1), lambda jnp, r: r[1]),
]  # fmt: skip

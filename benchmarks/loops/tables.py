"""Dynamic programming: tables that are filled by nested loops, row by row or element by element."""

from __future__ import annotations

import numpy as np

from .case import Loop, by_hand, floats, uniform

f4 = np.float32


def edit_distance(jax, jnp, lax, n):
    """Nested scans: a row of the table from the one above it."""

    def f(a, b):
        def row(above, at):
            letter, start = at

            def element(state, at):
                left, corner = state
                up, other = at
                best = jnp.minimum(jnp.minimum(left, up) + 1, corner + (letter != other))
                return (best, up), best

            _, row = lax.scan(element, (start, above[0]), (above[1:], b))
            return jnp.concatenate([start[None], row]), None

        return lax.scan(row, jnp.arange(n + 1), (a, jnp.arange(1, n + 1)))[0][n]

    return f


@by_hand
def edit_distance_numba(a, b, n):
    row = np.arange(n + 1)
    for i in range(n):
        corner = row[0]
        row[0] = i + 1
        for j in range(n):
            up = row[j + 1]
            row[j + 1] = min(min(row[j], up) + 1, corner + (1 if a[i] != b[j] else 0))
            corner = up
    return row[n]


def subsequence(jax, jnp, lax, n):
    """The table of lengths of longest common subsequences, element by element."""

    def f(a, b):
        def element(i, j, table):
            longer = jnp.maximum(table[i - 1, j], table[i, j - 1])
            return table.at[i, j].set(jnp.where(a[i - 1] == b[j - 1], table[i - 1, j - 1] + 1, longer))

        def row(i, table):
            return lax.fori_loop(1, n + 1, lambda j, t: element(i, j, t), table)

        return lax.fori_loop(1, n + 1, row, jnp.zeros((n + 1, n + 1), jnp.int32))

    return f


@by_hand
def subsequence_numba(a, b, n):
    table = np.zeros((n + 1, n + 1), np.int32)
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table


def knapsack(jax, jnp, lax, items, capacity):
    """Each item moves the whole row by its weight."""

    def f(weights, values):
        def item(best, at):
            weight, value = at
            padded = jnp.concatenate([jnp.full(capacity, -jnp.inf, jnp.float32), best])
            moved = lax.dynamic_slice(padded, (capacity - weight,), (capacity + 1,))
            new = jnp.maximum(best, moved + value)
            return new, new[capacity]

        return lax.scan(item, jnp.zeros(capacity + 1, jnp.float32), (weights, values))

    return f


@by_hand
def knapsack_numba(weights, values, items, capacity):
    best, out = np.zeros(capacity + 1, np.float32), np.empty(items, np.float32)
    for i in range(items):
        w = weights[i]
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + values[i])
        out[i] = best[capacity]
    return best, out


def knapsack_numpy(weights, values, items, capacity):
    best, out = np.zeros(capacity + 1, np.float32), np.empty(items, np.float32)
    for i, w in enumerate(weights):
        best[w:] = np.maximum(best[w:], best[: capacity + 1 - w] + values[i])
        out[i] = best[capacity]
    return best, out


def coins(jax, jnp, lax, amount):
    """The number of ways to pay an amount, modulo a prime; one element a step."""

    def f(values):
        def coin(k, ways):
            def pay(a, ways):
                return ways.at[a].set((ways[a] + ways[a - values[k]]) % 1_000_003)

            return lax.fori_loop(values[k], amount + 1, pay, ways)

        return lax.fori_loop(0, values.size, coin, jnp.zeros(amount + 1, jnp.int32).at[0].set(1))

    return f


@by_hand
def coins_numba(values, amount):
    ways = np.zeros(amount + 1, np.int32)
    ways[0] = 1
    for k in range(values.size):
        for a in range(values[k], amount + 1):
            ways[a] = (ways[a] + ways[a - values[k]]) % 1_000_003
    return ways


STATES = 16


def viterbi(jax, jnp, lax, steps):
    """The most likely states: scores forward, with the best predecessors; then backward along these."""

    def f(start, moves, scores):
        def forward(best, score):
            paths = best[:, None] + moves
            return jnp.max(paths, axis=0) + score, jnp.argmax(paths, axis=0)

        best, before = lax.scan(forward, start + scores[0], scores[1:])
        last = jnp.argmax(best)

        def backward(state, before):
            return before[state], before[state]

        _, path = lax.scan(backward, last, before, reverse=True)
        return jnp.max(best), jnp.concatenate([path, last[None]])

    return f


@by_hand
def viterbi_numba(start, moves, scores, steps):
    n = start.size
    best, new = start + scores[0], np.empty_like(start)
    before = np.empty((steps, n), np.int32)
    for t in range(1, steps):
        for j in range(n):
            top, at = best[0] + moves[0, j], 0
            for i in range(1, n):
                if best[i] + moves[i, j] > top:
                    top, at = best[i] + moves[i, j], i
            new[j], before[t, j] = top + scores[t, j], at
        best, new = new, best
    path = np.empty(steps, np.int32)
    path[steps - 1] = np.argmax(best)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = before[t, path[t]]
    return np.max(best), path


def viterbi_numpy(start, moves, scores, steps):
    best, before = start + scores[0], np.empty((steps, start.size), np.int32)
    for t in range(1, steps):
        paths = best[:, None] + moves
        before[t] = paths.argmax(0)
        best = paths.max(0) + scores[t]
    path = np.empty(steps, np.int32)
    path[-1] = best.argmax()
    for t in range(steps - 1, 0, -1):
        path[t - 1] = before[t, path[t]]
    return best.max(), path


def chain(jax, jnp, lax, n):
    """The cheapest order of a product of n matrices; a masked minimum for each element of the table."""

    def f(sizes):
        index = jnp.arange(n)

        def element(i, length, cost):
            j = i + length
            below = jnp.concatenate([cost[1:, j], jnp.zeros(1, cost.dtype)])
            products = sizes[i] * sizes[1:] * sizes[j + 1]
            total = jnp.where((index >= i) & (index < j), cost[i] + below + products, jnp.inf)
            return cost.at[i, j].set(jnp.min(total))

        def diagonal(length, cost):
            return lax.fori_loop(0, n - length, lambda i, c: element(i, length, c), cost)

        return lax.fori_loop(1, n, diagonal, jnp.zeros((n, n), jnp.float32))

    return f


@by_hand
def chain_numba(sizes, n):
    cost = np.zeros((n, n), np.float32)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best = f4(np.inf)
            for k in range(i, j):
                best = min(best, cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1])
            cost[i, j] = best
    return cost


def floyd(jax, jnp, lax, n):
    """All shortest paths of a graph."""

    def f(lengths):
        return lax.fori_loop(0, n, lambda k, d: jnp.minimum(d, d[:, k, None] + d[k, None, :]), lengths)

    return f


@by_hand
def floyd_numba(lengths, n):
    d = lengths.copy()
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def floyd_numpy(lengths, n):
    d = lengths
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[k, None, :])
    return d


DYNAMIC = frozenset({"dynamic"})


def _words(rng, n):
    return [rng.integers(0, 4, n).astype(np.int32), rng.integers(0, 4, n).astype(np.int32)]


LOOPS = [
    Loop("edit-distance", "edit distance by nested scans, 200x200", DYNAMIC, edit_distance, _words,
         {"n": 200}, {"n": 5}, edit_distance_numba),
    Loop("subsequence", "longest common subsequence by elements, 150x150", DYNAMIC | {"in place"}, subsequence, _words,
         {"n": 150}, {"n": 5}, subsequence_numba),
    Loop("knapsack", "knapsack, 200 items, capacity 2,000", DYNAMIC, knapsack,
         lambda rng, items, capacity: [rng.integers(1, 60, items).astype(np.int32), uniform(rng, 1, 9, items)],
         {"items": 200, "capacity": 2_000}, {"items": 4, "capacity": 80}, knapsack_numba, knapsack_numpy),
    Loop("coins", "ways to pay 5,000 with 8 coins, element by element", DYNAMIC | {"in place"}, coins,
         lambda rng, amount: [np.array([1, 2, 5, 10, 20, 50, 100, 200], np.int32)],
         {"amount": 5_000}, {"amount": 30}, coins_numba),
    Loop("viterbi", "Viterbi's path, 16 states, 1,000 steps", DYNAMIC, viterbi,
         lambda rng, steps: [floats(rng, STATES), floats(rng, STATES, STATES), floats(rng, steps, STATES)],
         {"steps": 1_000}, {"steps": 4}, viterbi_numba, viterbi_numpy),
    Loop("chain", "order of a product of 50 matrices, masked minima", DYNAMIC | {"in place"}, chain,
         lambda rng, n: [rng.integers(2, 30, n + 1).astype(np.float32)], {"n": 50}, {"n": 5}, chain_numba),
    Loop("floyd", "all shortest paths, 80 nodes", DYNAMIC, floyd,
         lambda rng, n: [uniform(rng, 0, 9, n, n)], {"n": 80}, {"n": 4}, floyd_numba, floyd_numpy),
]  # fmt: skip

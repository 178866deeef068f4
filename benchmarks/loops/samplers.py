"""Markov chains: Metropolis, Hamiltonian Monte Carlo, a No-U-Turn tree, Ising's model."""

from __future__ import annotations

import numpy as np

from .case import Loop, by_hand, floats
from .keys import fold_in, normal, threefry, unit

f4, u4 = np.float32, np.uint32


def metropolis(jax, jnp, lax, samples):
    """A random walk in two dimensions on a bent ridge."""

    def f(key, start):
        key = jax.random.wrap_key_data(key)

        def score(x):
            return -0.5 * x[0] ** 2 - 2 * (x[1] - 0.5 * x[0] ** 2) ** 2

        def step(state, i):
            x, now = state
            one, two = jax.random.split(jax.random.fold_in(key, i))
            new = x + 0.5 * jax.random.normal(one, (2,))
            proposed = score(new)
            good = jax.random.uniform(two) < jnp.exp(proposed - now)
            x, now = jnp.where(good, new, x), jnp.where(good, proposed, now)
            return (x, now), x

        return lax.scan(step, (start, score(start)), jnp.arange(samples))[1]

    return f


@by_hand
def metropolis_numba(key, start, samples):
    out = np.empty((samples, 2), start.dtype)
    x, y = start[0], start[1]
    now = f4(-0.5) * x * x - f4(2) * (y - f4(0.5) * x * x) ** 2
    for i in range(samples):
        a, b = fold_in(key[0], key[1], i)
        c, d = fold_in(a, b, 0)
        e, g = fold_in(a, b, 1)
        u, v = x + f4(0.5) * normal(c, d, 0), y + f4(0.5) * normal(c, d, 1)
        proposed = f4(-0.5) * u * u - f4(2) * (v - f4(0.5) * u * u) ** 2
        if unit(e, g, 0) < np.exp(proposed - now):
            x, y, now = u, v, proposed
        out[i, 0], out[i, 1] = x, y
    return out


def hmc(jax, jnp, lax, samples, leaps):
    """Hamiltonian Monte Carlo in 8 dimensions; the gradient of the potential is taken in the loop."""

    def f(key, start, precision):
        key = jax.random.wrap_key_data(key)

        def potential(q):
            return 0.5 * jnp.dot(q, precision @ q) + 0.05 * jnp.sum(q**4)

        slope = jax.grad(potential)

        def sample(q, i):
            one, two = jax.random.split(jax.random.fold_in(key, i))
            p = jax.random.normal(one, (8,))

            def leap(_, state):
                q, p = state
                p = p - 0.05 * slope(q)
                q = q + 0.1 * p
                return q, p - 0.05 * slope(q)

            new, end = lax.fori_loop(0, leaps, leap, (q, p))
            gain = potential(q) + 0.5 * jnp.dot(p, p) - potential(new) - 0.5 * jnp.dot(end, end)
            q = jnp.where(jnp.log(jax.random.uniform(two)) < gain, new, q)
            return q, q

        return lax.scan(sample, start, jnp.arange(samples))[1]

    return f


@by_hand
def quartic(q, precision, slope):
    """The potential; writes its slope."""
    total = f4(0)
    for i in range(q.size):
        row = f4(0)
        for j in range(q.size):
            row += precision[i, j] * q[j]
        square = q[i] * q[i]
        slope[i] = row + f4(0.2) * square * q[i]
        total += f4(0.5) * q[i] * row + f4(0.05) * square * square
    return total


@by_hand
def hmc_numba(key, start, precision, samples, leaps):
    q, new, p, slope = start.copy(), start.copy(), np.empty_like(start), np.empty_like(start)
    out = np.empty((samples, q.size), q.dtype)
    for s in range(samples):
        a, b = fold_in(key[0], key[1], s)
        c, d = fold_in(a, b, 0)
        e, g = fold_in(a, b, 1)
        gain = quartic(q, precision, slope)
        for i in range(q.size):
            p[i] = normal(c, d, i)
            gain += f4(0.5) * p[i] * p[i]
            new[i] = q[i]
        end = gain
        for _ in range(leaps):
            for i in range(q.size):
                p[i] -= f4(0.05) * slope[i]
                new[i] += f4(0.1) * p[i]
            end = quartic(new, precision, slope)
            for i in range(q.size):
                p[i] -= f4(0.05) * slope[i]
        for i in range(q.size):
            end += f4(0.5) * p[i] * p[i]
        if np.log(unit(e, g, 0)) < gain - end:
            q, new = new, q
        out[s] = q
    return out


DEPTH = 6
"""A tree of the sampler has at most 2**6 leaves."""


def nuts(jax, jnp, lax, samples):
    """Hoffman and Gelman's sampler without recursion, in 4 dimensions.

    A trajectory doubles forward or backward. A new half is walked leaf by leaf; of each open subtree the first leaf's
    momentum and sum are kept in a small table, so that all turns are seen as in the recursive tree.
    """

    def f(key, start, precision):
        key = jax.random.wrap_key_data(key)

        def potential(q):
            return 0.5 * jnp.dot(q, precision @ q) + 0.05 * jnp.sum(q**4)

        slope = jax.grad(potential)

        def leap(q, p, size):
            p = p - 0.5 * size * slope(q)
            q = q + size * p
            return q, p - 0.5 * size * slope(q)

        def turns(left, right, total):
            return (jnp.dot(left, total) <= 0) | (jnp.dot(right, total) <= 0)

        def half(key, q, p, size, leaves, energy):
            """Up to `leaves` more leaves from an end: the new end, a leaf drawn by weight, the sums, and whether it
            turned."""

            def leaf(state):
                n, q, p, drawn, weight, total, firsts, sums, _ = state
                q, p = leap(q, p, size)
                share = jnp.exp(energy - potential(q) - 0.5 * jnp.dot(p, p))
                weight = weight + share
                take = jax.random.uniform(jax.random.fold_in(key, n)) * weight < share
                drawn, total = jnp.where(take, q, drawn), total + p
                top = lax.population_count(n // 2)
                even = n % 2 == 0
                firsts = firsts.at[top].set(jnp.where(even, p, firsts[top]))
                sums = sums.at[top].set(jnp.where(even, total, sums[top]))
                lowest = top - lax.population_count(n & ~(n + 1)) + 1

                def look(state):
                    k, _ = state
                    return k - 1, turns(firsts[k], p, total - sums[k] + firsts[k])

                _, turned = lax.while_loop(lambda s: (s[0] >= lowest) & ~s[1], look, (top, jnp.bool_(False)))
                return n + 1, q, p, drawn, weight, total, firsts, sums, turned & ~even

            table = jnp.zeros((DEPTH, 4), jnp.float32)
            zeros = jnp.zeros(4, jnp.float32)
            state = (jnp.int32(0), q, p, q, jnp.float32(0), zeros, table, table, jnp.bool_(False))
            _, q, p, drawn, weight, total, _, _, turned = lax.while_loop(
                lambda s: (s[0] < leaves) & ~s[8], leaf, state
            )
            return q, p, drawn, weight, total, turned

        def sample(q, i):
            one, two = jax.random.split(jax.random.fold_in(key, i))
            p = jax.random.normal(one, (4,))
            energy = potential(q) + 0.5 * jnp.dot(p, p)

            def double(state):
                depth, left, right, chosen, weight, total, _ = state
                way, walk = jax.random.split(jax.random.fold_in(two, depth))
                forward = jax.random.uniform(way) < 0.5
                q = jnp.where(forward, right[0], left[0])
                p = jnp.where(forward, right[1], left[1])
                size = jnp.where(forward, 0.2, -0.2)
                q, p, drawn, more, added, turned = half(walk, q, p, size, 1 << depth, energy)
                left = (jnp.where(forward, left[0], q), jnp.where(forward, left[1], p))
                right = (jnp.where(forward, q, right[0]), jnp.where(forward, p, right[1]))
                take = ~turned & (jax.random.uniform(jax.random.fold_in(way, 1)) * weight < more)
                total = total + added
                turned = turned | turns(left[1], right[1], total)
                return depth + 1, left, right, jnp.where(take, drawn, chosen), weight + more, total, turned

            state = (jnp.int32(0), (q, p), (q, p), q, jnp.float32(1), p, jnp.bool_(False))
            depth, _, _, q, _, _, _ = lax.while_loop(lambda s: (s[0] < DEPTH) & ~s[6], double, state)
            return q, (q, depth)

        return lax.scan(sample, start, jnp.arange(samples))[1]

    return f


@by_hand
def turns(left, right, total):
    one = other = f4(0)
    for i in range(total.size):
        one += left[i] * total[i]
        other += right[i] * total[i]
    return one <= 0 or other <= 0


@by_hand
def ones(n):
    """The number of bits that are set."""
    found = 0
    while n:
        n &= n - 1
        found += 1
    return found


@by_hand
def nuts_numba(key, start, precision, samples):
    n = start.size
    out, depths = np.empty((samples, n), start.dtype), np.empty(samples, np.int32)
    current, slope = start.copy(), np.empty_like(start)
    ends_q, ends_p = np.empty((2, n), start.dtype), np.empty((2, n), start.dtype)
    firsts, sums = np.zeros((DEPTH, n), start.dtype), np.zeros((DEPTH, n), start.dtype)
    total, added, drawn = np.empty_like(start), np.empty_like(start), np.empty_like(start)
    part, p, q = np.empty_like(start), np.empty_like(start), np.empty_like(start)
    for s in range(samples):
        a, b = fold_in(key[0], key[1], s)
        c, d = fold_in(a, b, 0)
        e, g = fold_in(a, b, 1)
        energy = quartic(current, precision, slope)
        for i in range(n):
            p[i] = normal(c, d, i)
            energy += f4(0.5) * p[i] * p[i]
        ends_q[:], ends_p[:], total[:] = current, p, p
        weight, turned, depth = f4(1), False, 0
        while depth < DEPTH and not turned:
            h0, h1 = fold_in(e, g, depth)
            way0, way1 = fold_in(h0, h1, 0)
            walk0, walk1 = fold_in(h0, h1, 1)
            end = 1 if unit(way0, way1, 0) < f4(0.5) else 0
            size = f4(0.2) if end == 1 else f4(-0.2)
            q[:], p[:], added[:] = ends_q[end], ends_p[end], 0
            more, leaf = f4(0), 0
            quartic(q, precision, slope)
            while leaf < (1 << depth) and not turned:
                for i in range(n):
                    p[i] -= f4(0.5) * size * slope[i]
                    q[i] += size * p[i]
                height = quartic(q, precision, slope)
                for i in range(n):
                    p[i] -= f4(0.5) * size * slope[i]
                    height += f4(0.5) * p[i] * p[i]
                    added[i] += p[i]
                share = np.exp(energy - height)
                more += share
                k0, k1 = fold_in(walk0, walk1, leaf)
                if unit(k0, k1, 0) * more < share:
                    drawn[:] = q
                top = ones(leaf // 2)
                if leaf % 2 == 0:
                    firsts[top], sums[top] = p, added
                else:
                    lowest, k = top - ones(leaf & ~(leaf + 1)) + 1, top
                    while k >= lowest and not turned:
                        for i in range(n):
                            part[i] = added[i] - sums[k, i] + firsts[k, i]
                        turned = turns(firsts[k], p, part)
                        k -= 1
                leaf += 1
            ends_q[end], ends_p[end] = q, p
            k0, k1 = fold_in(way0, way1, 1)
            if not turned and unit(k0, k1, 0) * weight < more:
                current[:] = drawn
            weight += more
            for i in range(n):
                total[i] += added[i]
            turned = turned or turns(ends_p[0], ends_p[1], total)
            depth += 1
        out[s], depths[s] = current, depth
    return out, depths


def ising(jax, jnp, lax, n, flips):
    """Metropolis by single spins; a step draws a place and a number."""

    def f(key, spins, coupling):
        key = jax.random.wrap_key_data(key)

        def step(k, spins):
            drawn = jax.random.bits(jax.random.fold_in(key, k), (2,))
            place = (drawn[0] % (n * n)).astype(jnp.int32)
            i, j = place // n, place % n
            around = spins[(i + 1) % n, j] + spins[(i + n - 1) % n, j]
            around = around + spins[i, (j + 1) % n] + spins[i, (j + n - 1) % n]
            chance = jnp.exp(-2 * coupling * (spins[i, j] * around).astype(jnp.float32))
            flip = (drawn[1] >> 9).astype(jnp.float32) * 2.0**-23 < chance
            return spins.at[i, j].set(jnp.where(flip, -spins[i, j], spins[i, j]))

        return lax.fori_loop(0, flips, step, spins)

    return f


@by_hand
def bits(k0, k1, i):
    """Element i of `jax.random.bits(key, ...)`."""
    a, b = threefry(u4(k0), u4(k1), u4(0), u4(i))
    return u4(a ^ b)


@by_hand
def ising_numba(key, spins, coupling, n, flips):
    spins = spins.copy()
    for k in range(flips):
        a, b = fold_in(key[0], key[1], k)
        place = int(bits(a, b, 0)) % (n * n)
        i, j = place // n, place % n
        around = spins[(i + 1) % n, j] + spins[(i + n - 1) % n, j] + spins[i, (j + 1) % n] + spins[i, (j + n - 1) % n]
        chance = np.exp(f4(-2) * coupling * f4(spins[i, j] * around))
        if f4(u4(bits(a, b, 1) >> u4(9))) * f4(2.0**-23) < chance:
            spins[i, j] = -spins[i, j]
    return spins


SAMPLER = frozenset({"sampler", "random"})
KEY = np.array([0, 9], np.uint32)


def _precision(rng, n):
    x = floats(rng, n, n)
    return x @ x.T / f4(n) + np.eye(n, dtype=np.float32)


LOOPS = [
    Loop("metropolis", "Metropolis' random walk, 2 dimensions, 5,000 samples", SAMPLER, metropolis,
         lambda rng, samples: [KEY, floats(rng, 2)], {"samples": 5_000}, {"samples": 5}, metropolis_numba,
         tolerance=1e-3),
    Loop("hmc", "Hamiltonian Monte Carlo, 8 dimensions, 300 samples of 10 leaps", SAMPLER, hmc,
         lambda rng, samples, leaps: [KEY, floats(rng, 8), _precision(rng, 8)],
         {"samples": 300, "leaps": 10}, {"samples": 3, "leaps": 3}, hmc_numba, tolerance=1e-2),
    Loop("nuts", "No-U-Turn sampler, 4 dimensions, 200 samples", SAMPLER | {"while", "in place"}, nuts,
         lambda rng, samples: [KEY, floats(rng, 4), _precision(rng, 4)],
         {"samples": 200}, {"samples": 4}, nuts_numba, tolerance=1e-2),
    Loop("ising", "Ising's model, 32x32, 10,000 single flips", SAMPLER | {"in place"}, ising,
         lambda rng, n, flips: [KEY, rng.choice(np.array([-1, 1], np.int32), (n, n)), f4(0.4)],
         {"n": 32, "flips": 10_000}, {"n": 3, "flips": 9}, ising_numba),
]  # fmt: skip

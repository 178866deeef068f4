"""Triangular algorithms as nested loops: a row is masked to its part, elements are written one by one."""

from __future__ import annotations

import numpy as np

from .case import Loop, by_hand, floats, gradient

f4 = np.float32


def cholesky(jax, jnp, lax, n):
    def f(a):
        index = jnp.arange(n)

        def column(j, low):
            def element(i, low):
                known = jnp.sum(jnp.where(index < j, low[i] * low[j], 0))
                left = a[i, j] - known
                return low.at[i, j].set(jnp.where(i == j, jnp.sqrt(left), left / low[j, j]))

            return lax.fori_loop(j, n, element, low)

        return lax.fori_loop(0, n, column, jnp.zeros_like(a))

    return f


@by_hand
def cholesky_numba(a, n):
    low = np.zeros_like(a)
    for j in range(n):
        for i in range(j, n):
            left = a[i, j]
            for k in range(j):
                left -= low[i, k] * low[j, k]
            low[i, j] = np.sqrt(left) if i == j else left / low[j, j]
    return low


def cholesky_rows(jax, jnp, lax, n):
    """Row by row: an element is written where its row is read."""

    def f(a):
        index = jnp.arange(n)

        def row(i, low):
            def element(j, low):
                left = a[i, j] - jnp.dot(jnp.where(index < j, low[i], 0), low[j])
                return low.at[i, j].set(left / low[j, j])

            low = lax.fori_loop(0, i, element, low)
            square = a[i, i] - jnp.sum(jnp.where(index < i, low[i] ** 2, 0))
            return low.at[i, i].set(jnp.sqrt(square))

        return lax.fori_loop(0, n, row, jnp.zeros_like(a))

    return f


def cholesky_columns(jax, jnp, lax, n):
    """In place, column by column: each finished column is taken out of those to its right."""

    def f(a):
        index = jnp.arange(n)

        def column(k, a):
            pivot = jnp.sqrt(a[k, k])
            a = a.at[:, k].set(jnp.where(index > k, a[:, k] / pivot, jnp.where(index == k, pivot, 0)))

            def right(j, a):
                return a.at[:, j].add(jnp.where(index >= j, -a[j, k] * a[:, k], 0))

            return lax.fori_loop(k + 1, n, right, a)

        return lax.fori_loop(0, n, column, a)

    return f


@by_hand
def cholesky_columns_numba(a, n):
    a = a.copy()
    for k in range(n):
        a[k, k] = np.sqrt(a[k, k])
        for i in range(k):
            a[i, k] = 0
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k]
    return a


def lu(jax, jnp, lax, n):
    """In place, without pivots; L has ones on its diagonal."""

    def f(a):
        index = jnp.arange(n)

        def column(k, a):
            def row(i, a):
                factor = a[i, k] / a[k, k]
                rest = a[i] - jnp.where(index > k, factor * a[k], 0)
                return a.at[i].set(rest).at[i, k].set(factor)

            return lax.fori_loop(k + 1, n, row, a)

        return lax.fori_loop(0, n, column, a)

    return f


@by_hand
def lu_numba(a, n):
    a = a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k] = factor
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
    return a


def lu_numpy(a, n):
    a = a.copy()
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def substitution(jax, jnp, lax, n):
    def f(low, b):
        index = jnp.arange(n)

        def row(i, x):
            known = jnp.sum(jnp.where(index < i, low[i] * x, 0))
            return x.at[i].set((b[i] - known) / low[i, i])

        return lax.fori_loop(0, n, row, jnp.zeros_like(b))

    return f


@by_hand
def substitution_numba(low, b, n):
    x = np.zeros_like(b)
    for i in range(n):
        left = b[i]
        for k in range(i):
            left -= low[i, k] * x[k]
        x[i] = left / low[i, i]
    return x


def substitution_numpy(low, b, n):
    x = np.zeros_like(b)
    for i in range(n):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return x


def solve(jax, jnp, lax, n):
    """Forward and then backward, as after a Cholesky decomposition."""

    def f(low, b):
        index = jnp.arange(n)

        def forward(i, y):
            return y.at[i].set((y[i] - jnp.dot(jnp.where(index < i, low[i], 0), y)) / low[i, i])

        def backward(k, x):
            i = n - 1 - k
            return x.at[i].set((x[i] - jnp.dot(jnp.where(index > i, low[:, i], 0), x)) / low[i, i])

        return lax.fori_loop(0, n, backward, lax.fori_loop(0, n, forward, b))

    return f


@by_hand
def solve_numba(low, b, n):
    x = b.copy()
    for i in range(n):
        left = x[i]
        for k in range(i):
            left -= low[i, k] * x[k]
        x[i] = left / low[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= low[i, i]
        for k in range(i):
            x[k] -= low[i, k] * x[i]
    return x


def solve_numpy(low, b, n):
    x = b.copy()
    for i in range(n):
        x[i] = (x[i] - low[i, :i] @ x[:i]) / low[i, i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - low[i + 1 :, i] @ x[i + 1 :]) / low[i, i]
    return x


def inverse(jax, jnp, lax, n):
    """Of a lower triangular matrix, row by row: a row is a product of a masked row with those before it."""

    def f(low):
        index = jnp.arange(n)

        def row(i, found):
            known = jnp.where(index < i, low[i], 0) @ found
            return found.at[i].set((jnp.where(index == i, 1, 0) - known) / low[i, i])

        return lax.fori_loop(0, n, row, jnp.zeros_like(low))

    return f


@by_hand
def inverse_numba(low, n):
    found = np.zeros_like(low)
    for i in range(n):
        found[i, i] = 1
        for k in range(i):
            for j in range(k + 1):
                found[i, j] -= low[i, k] * found[k, j]
        for j in range(i + 1):
            found[i, j] /= low[i, i]
    return found


def inverse_numpy(low, n):
    found = np.zeros_like(low)
    for i in range(n):
        found[i] = -(low[i, :i] @ found[:i]) / low[i, i]
        found[i, i] = 1 / low[i, i]
    return found


def gram_schmidt(jax, jnp, lax, n):
    """Modified: each column is normalised and then taken out of those after it."""

    def f(a):
        def column(j, state):
            def other(i, state):
                q, r = state
                part = jnp.dot(q[:, j], q[:, i])
                return q.at[:, i].add(-part * q[:, j]), r.at[j, i].set(part)

            q, r = state
            length = jnp.sqrt(jnp.sum(q[:, j] ** 2))
            q, r = q.at[:, j].set(q[:, j] / length), r.at[j, j].set(length)
            return lax.fori_loop(j + 1, n, other, (q, r))

        return lax.fori_loop(0, n, column, (a, jnp.zeros_like(a)))

    return f


@by_hand
def gram_schmidt_numba(a, n):
    q, r = a.copy(), np.zeros_like(a)
    for j in range(n):
        total = f4(0)
        for k in range(n):
            total += q[k, j] * q[k, j]
        length = np.sqrt(total)
        r[j, j] = length
        for k in range(n):
            q[k, j] /= length
        for i in range(j + 1, n):
            part = f4(0)
            for k in range(n):
                part += q[k, j] * q[k, i]
            for k in range(n):
                q[k, i] -= part * q[k, j]
            r[j, i] = part
    return q, r


def thomas(jax, jnp, lax, n):
    """A tridiagonal system: one sweep down, one up."""

    def f(low, diagonal, high, right):
        def down(i, state):
            c, d = state
            pivot = diagonal[i] - low[i] * c[i - 1]
            return c.at[i].set(high[i] / pivot), d.at[i].set((right[i] - low[i] * d[i - 1]) / pivot)

        c = jnp.zeros_like(high).at[0].set(high[0] / diagonal[0])
        d = jnp.zeros_like(right).at[0].set(right[0] / diagonal[0])
        c, d = lax.fori_loop(1, n, down, (c, d))

        def up(k, x):
            i = n - 2 - k
            return x.at[i].set(x[i] - c[i] * x[i + 1])

        return lax.fori_loop(0, n - 1, up, d)

    return f


@by_hand
def thomas_numba(low, diagonal, high, right, n):
    c, x = np.empty_like(high), np.empty_like(right)
    c[0], x[0] = high[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - low[i] * c[i - 1]
        c[i] = high[i] / pivot
        x[i] = (right[i] - low[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


def pivoting(jax, jnp, lax, n):
    """Gaussian elimination with partial pivots: the largest element below is sought, two rows change places."""

    def f(a, b):
        index = jnp.arange(n)

        def column(k, state):
            a, b = state
            p = jnp.argmax(jnp.where(index >= k, jnp.abs(a[:, k]), -1))
            upper, lower, above, below = a[k], a[p], b[k], b[p]
            a, b = a.at[k].set(lower).at[p].set(upper), b.at[k].set(below).at[p].set(above)
            factors = jnp.where(index > k, a[:, k] / a[k, k], 0)
            return a - factors[:, None] * a[k], b - factors * b[k]

        a, b = lax.fori_loop(0, n, column, (a, b))

        def back(k, x):
            i = n - 1 - k
            known = jnp.sum(jnp.where(index > i, a[i] * x, 0))
            return x.at[i].set((b[i] - known) / a[i, i])

        return lax.fori_loop(0, n, back, jnp.zeros_like(b))

    return f


@by_hand
def pivoting_numba(a, b, n):
    a, b = a.copy(), b.copy()
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        for j in range(k, n):
            a[k, j], a[p, j] = a[p, j], a[k, j]
        b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            b[i] -= factor * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]
    return b


TRIANGULAR = frozenset({"triangular", "in place"})


def _definite(rng, n):
    x = floats(rng, n, n)
    return x @ x.T / f4(n) + np.eye(n, dtype=np.float32)


def _dominant(rng, n):
    return floats(rng, n, n) + f4(2 * n) * np.eye(n, dtype=np.float32)


def _lower(rng, n):
    return np.tril(floats(rng, n, n) / f4(n)) + f4(2) * np.eye(n, dtype=np.float32)


def _bands(rng, n):
    return [floats(rng, n), 6 + rng.random(n, np.float32), floats(rng, n), floats(rng, n)]


SUBSTITUTION = Loop(
    "substitution", "forward substitution by masked rows, n = 200", TRIANGULAR, substitution,
    lambda rng, n: [_lower(rng, n), floats(rng, n)], {"n": 200}, {"n": 5}, substitution_numba, substitution_numpy,
)  # fmt: skip

LOOPS = [
    Loop("cholesky", "Cholesky by elements, masked rows, n = 100", TRIANGULAR, cholesky,
         lambda rng, n: [_definite(rng, n)], {"n": 100}, {"n": 5}, cholesky_numba, lambda a, n: np.linalg.cholesky(a)),
    Loop("cholesky-rows", "Cholesky row by row, masked, n = 100", TRIANGULAR, cholesky_rows,
         lambda rng, n: [_definite(rng, n)], {"n": 100}, {"n": 5}, cholesky_numba, lambda a, n: np.linalg.cholesky(a)),
    Loop("cholesky-columns", "Cholesky in place, masked columns, n = 100", TRIANGULAR, cholesky_columns,
         lambda rng, n: [_definite(rng, n)], {"n": 100}, {"n": 5},
         cholesky_columns_numba, lambda a, n: np.linalg.cholesky(a)),
    Loop("lu", "LU by rows, masked, n = 100", TRIANGULAR, lu,
         lambda rng, n: [_dominant(rng, n)], {"n": 100}, {"n": 5}, lu_numba, lu_numpy),
    SUBSTITUTION,
    Loop("solve", "forward and backward substitution, n = 200", TRIANGULAR, solve,
         lambda rng, n: [_lower(rng, n), floats(rng, n)], {"n": 200}, {"n": 5}, solve_numba, solve_numpy),
    Loop("inverse", "inverse of a triangular matrix by rows, n = 80", TRIANGULAR, inverse,
         lambda rng, n: [_lower(rng, n)], {"n": 80}, {"n": 5}, inverse_numba, inverse_numpy),
    Loop("gram-schmidt", "QR by modified Gram-Schmidt, column by column, n = 60", TRIANGULAR, gram_schmidt,
         lambda rng, n: [_dominant(rng, n)], {"n": 60}, {"n": 4}, gram_schmidt_numba),
    Loop("thomas", "tridiagonal system, n = 5,000", TRIANGULAR, thomas, _bands, {"n": 5_000}, {"n": 6}, thomas_numba),
    Loop("pivoting", "Gaussian elimination with partial pivots, n = 60", TRIANGULAR, pivoting,
         lambda rng, n: [floats(rng, n, n), floats(rng, n)], {"n": 60}, {"n": 4}, pivoting_numba,
         lambda a, b, n: np.linalg.solve(a, b), tolerance=1e-2),
    gradient(SUBSTITUTION, (0, 1), lambda jnp, x: jnp.sum(x * x)),
]  # fmt: skip

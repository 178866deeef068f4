"""Gather, scatter, segments: elements and rows by indices."""

from __future__ import annotations

import numpy as np

from .declare import Gradient, Group, Row, floats, prange

GROUP = Group("indexing")
f4 = np.float32


def indices(rng, below, *dimensions):
    return rng.integers(0, below, dimensions).astype(np.int32)


@GROUP.row("gather", n=50)
def gather(rng, n=1_000_000):
    return Row(
        "gather of 1M of 1M f32",
        [floats(rng, n), indices(rng, n, n)],
        lambda jax, jnp: lambda x, i: x.at[i].get(mode="clip"),
        lambda x, i: x.take(i, mode="clip"),
        gather_numba,
        lambda torch: lambda x, i: x[i],
    )


def gather_numba(x, where):
    out = np.empty(where.size, x.dtype)
    for i in prange(where.size):
        out[i] = x[min(max(where[i], 0), x.size - 1)]
    return out


@GROUP.row("embedding", n=20)
def embedding(rng, n=16384):
    return Row(
        "rows of a table 10,000x128 f32, 16,384 of them",
        [floats(rng, 10_000, 128), indices(rng, 10_000, n)],
        lambda jax, jnp: lambda t, i: t[i],
        lambda t, i: t[i],
        embedding_numba,
        lambda torch: lambda t, i: torch.nn.functional.embedding(i, t),
    )


def embedding_numba(table, where):
    out = np.empty((where.size, table.shape[1]), table.dtype)
    for i in prange(where.size):
        for j in range(table.shape[1]):
            out[i, j] = table[where[i], j]
    return out


@GROUP.row("grad-embedding", n=20)
def grad_embedding(rng, n=16384):
    def text(jax, jnp):
        return jax.grad(lambda t, i, g: (t[i] * g).sum())

    return Row(
        "gradient of that",
        [floats(rng, 10_000, 128), indices(rng, 10_000, n), floats(rng, n, 128)],
        text,
        numba=grad_embedding_numba,
        torch=lambda torch: Gradient(lambda t, i, g: (torch.nn.functional.embedding(i, t) * g).sum()),
    )


def grad_embedding_numba(table, where, g):
    out = np.zeros_like(table)
    pieces = 4
    width = (table.shape[1] + pieces - 1) // pieces
    for s in prange(pieces):
        for i in range(where.size):
            for j in range(s * width, min(table.shape[1], (s + 1) * width)):
                out[where[i], j] += g[i, j]
    return out


@GROUP.row("scatter-add", n=50)
def scatter_add(rng, n=1_000_000):
    def in_numpy(z, i, u):
        result = z.copy()
        np.add.at(result, i, u)
        return result

    return Row(
        "scatter-add of 1M f32 into 1000",
        [np.zeros(1000, f4), indices(rng, 1000, n), floats(rng, n)],
        lambda jax, jnp: lambda z, i, u: z.at[i].add(u),
        in_numpy,
        scatter_add_numba,
        lambda torch: lambda z, i, u: z.index_add(0, i, u),
    )


def scatter_add_numba(z, where, updates):
    pieces = 8
    size = (updates.size + pieces - 1) // pieces
    own = np.zeros((pieces, z.size), z.dtype)
    for s in prange(pieces):
        for i in range(s * size, min(updates.size, (s + 1) * size)):
            own[s, where[i]] += updates[i]
    return z + own.sum(0)


@GROUP.row("scatter-rows", n=20)
def scatter_rows(rng, n=8192):
    def in_numpy(t, i, u):
        result = t.copy()
        result[i] = u
        return result

    where = rng.permutation(20_000)[:n].astype(np.int32)
    return Row(
        "8,192 rows of 20,000x64 f32 set",
        [floats(rng, 20_000, 64), where, floats(rng, n, 64)],
        lambda jax, jnp: lambda t, i, u: t.at[i].set(u),
        in_numpy,
        scatter_rows_numba,
        lambda torch: lambda t, i, u: t.index_copy(0, i.long(), u),
    )


def scatter_rows_numba(table, where, updates):
    out = np.empty_like(table)
    for i in prange(table.shape[0]):
        for j in range(table.shape[1]):
            out[i, j] = table[i, j]
    for i in prange(where.size):
        for j in range(table.shape[1]):
            out[where[i], j] = updates[i, j]
    return out


@GROUP.row("segment-sum", n=50)
def segment_sum(rng, n=200_000):
    def in_numpy(x, s):
        out = np.zeros((1000, x.shape[1]), x.dtype)
        np.add.at(out, s, x)
        return out

    return Row(
        "sums of 1,000 segments, sorted, 200,000x8 f32",
        [floats(rng, n, 8), np.sort(indices(rng, 1000, n))],
        lambda jax, jnp: lambda x, s: jax.ops.segment_sum(x, s, 1000, indices_are_sorted=True),
        in_numpy,
        segment_sum_numba,
        lambda torch: lambda x, s: x.new_zeros(1000, x.shape[1]).index_add(0, s, x),
    )


def segment_sum_numba(x, segments):
    pieces = 4
    size = (x.shape[0] + pieces - 1) // pieces
    own = np.zeros((pieces, 1000, x.shape[1]), x.dtype)
    for p in prange(pieces):
        for i in range(p * size, min(x.shape[0], (p + 1) * size)):
            for j in range(x.shape[1]):
                own[p, segments[i], j] += x[i, j]
    return own.sum(0)


@GROUP.row("segment-max", n=50)
def segment_max(rng, n=1_000_000):
    def in_numpy(x, s):
        out = np.full(1000, -np.inf, x.dtype)
        np.maximum.at(out, s, x)
        return out

    return Row(
        "largest of 1,000 segments, 1M f32",
        [
            floats(rng, n),
            np.concatenate([np.arange(1000), indices(rng, 1000, n - 1000)]).astype(np.int32)
            if n > 1000
            else indices(rng, 1000, n),
        ],
        lambda jax, jnp: lambda x, s: jax.ops.segment_max(x, s, 1000),
        in_numpy,
        segment_max_numba,
        lambda torch: lambda x, s: x.new_full((1000,), -float("inf")).scatter_reduce(0, s.long(), x, "amax"),
    )


def segment_max_numba(x, segments):
    out = np.full(1000, -np.inf, x.dtype)
    for i in range(x.size):
        if x[i] > out[segments[i]]:
            out[segments[i]] = x[i]
    return out


@GROUP.row("bincount", n=50)
def histogram(rng, n=1_000_000):
    return Row(
        "bincount of 1M in 256",
        [indices(rng, 256, n)],
        lambda jax, jnp: lambda i: jnp.bincount(i, length=256),
        lambda i: np.bincount(i, minlength=256),
        histogram_numba,
        lambda torch: lambda i: torch.bincount(i, minlength=256),
        compiled=False,
    )


def histogram_numba(where):
    pieces = 8
    size = (where.size + pieces - 1) // pieces
    own = np.zeros((pieces, 256), np.int32)
    for p in prange(pieces):
        for i in range(p * size, min(where.size, (p + 1) * size)):
            own[p, where[i]] += 1
    return own.sum(0)


@GROUP.row("take-along", n=20)
def take_along(rng, n=1024):
    return Row(
        "8 elements of each row of 1024x1024 f32",
        [floats(rng, n, n), indices(rng, n, n, 8)],
        lambda jax, jnp: lambda x, i: jnp.take_along_axis(x, i, axis=1),
        lambda x, i: np.take_along_axis(x, i, 1),
        take_along_numba,
        lambda torch: lambda x, i: torch.gather(x, 1, i.long()),
    )


def take_along_numba(x, where):
    out = np.empty(where.shape, x.dtype)
    for i in prange(where.shape[0]):
        for j in range(where.shape[1]):
            out[i, j] = x[i, where[i, j]]
    return out

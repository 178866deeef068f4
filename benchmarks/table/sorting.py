"""Sorting, searching, the largest few, cumulative operations."""

from __future__ import annotations

import numpy as np

from .declare import Group, Row, floats, over, prange

GROUP = Group("sort")
CUMULATIVE = Group("cumulative")
f4 = np.float32


@GROUP.row("sort", n=50)
def sort(rng, n=1_000_000):
    return Row(
        "sort of 1M f32",
        [floats(rng, n)],
        over(lambda np, x: np.sort(x)),
        np.sort,
        sort_numba,
        lambda torch: lambda x: torch.sort(x)[0],
        compiled=False,
    )


def sort_numba(x):
    return np.sort(x)


@GROUP.row("sort-rows", n=8)
def sort_rows(rng, n=1024):
    return Row(
        "sort of each row of 1024x1024 f32",
        [floats(rng, n, n)],
        over(lambda np, x: np.sort(x)),
        np.sort,
        sort_rows_numba,
        lambda torch: lambda x: torch.sort(x)[0],
        compiled=False,
    )


def sort_rows_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        out[i] = np.sort(x[i])
    return out


@GROUP.row("sort-s32", n=50)
def sort_ints(rng, n=1_000_000):
    return Row(
        "sort of 1M s32",
        [rng.integers(-(2**31), 2**31, n).astype(np.int32)],
        over(lambda np, x: np.sort(x)),
        np.sort,
        sort_numba,
        lambda torch: lambda x: torch.sort(x)[0],
        compiled=False,
        tolerance=0,
    )


@GROUP.row("argsort", n=50)
def argsort(rng, n=1_000_000):
    return Row(
        "argsort of 1M f32",
        [rng.permutation(n).astype(f4)],
        over(lambda np, x: np.argsort(x)),
        np.argsort,
        argsort_numba,
        lambda torch: torch.argsort,
        compiled=False,
        tolerance=0,
    )


def argsort_numba(x):
    return np.argsort(x)


@GROUP.row("sort-pairs", n=50)
def sort_pairs(rng, n=300_000):
    def in_numpy(k, v):
        order = np.argsort(k, kind="stable")
        return k[order], v[order]

    def in_torch(torch):
        def f(k, v):
            keys, order = torch.sort(k, stable=True)
            return keys, v[order]

        return f

    return Row(
        "keys and values sorted by keys, 300,000 s32",
        [rng.permutation(n).astype(np.int32), np.arange(n, dtype=np.int32)],
        lambda jax, jnp: lambda k, v: jax.lax.sort((k, v), num_keys=1),
        in_numpy,
        sort_pairs_numba,
        in_torch,
        compiled=False,
        tolerance=0,
    )


def sort_pairs_numba(keys, values):
    order = np.argsort(keys)
    return keys[order], values[order]


@GROUP.row("top-k", n=16)
def top_k(rng, n=1024):
    def in_numpy(x):
        some = np.argpartition(x, -10)[:, -10:]
        order = np.argsort(-np.take_along_axis(x, some, 1))
        places = np.take_along_axis(some, order, 1)
        return np.take_along_axis(x, places, 1), places

    return Row(
        "top 10 of each row of 1024x1024 f32",
        [rng.permutation(n * n).astype(f4).reshape(n, n)],
        lambda jax, jnp: lambda x: jax.lax.top_k(x, 10),
        in_numpy,
        top_k_numba,
        lambda torch: lambda x: tuple(torch.topk(x, 10)),
        compiled=False,
    )


def top_k_numba(x):
    k = 10
    values, places = np.empty((x.shape[0], k), x.dtype), np.empty((x.shape[0], k), np.int32)
    for i in prange(x.shape[0]):
        filled = 0
        for j in range(x.shape[1]):
            if filled < k or x[i, j] > values[i, k - 1]:
                at = filled if filled < k else k - 1
                while at > 0 and x[i, j] > values[i, at - 1]:
                    values[i, at] = values[i, at - 1]
                    places[i, at] = places[i, at - 1]
                    at -= 1
                values[i, at] = x[i, j]
                places[i, at] = j
                filled = min(filled + 1, k)
    return values, places


@GROUP.row("median", n=16)
def median(rng, n=1024):
    return Row(
        "median of each row of 1024x1024 f32",
        [floats(rng, n, n)],
        over(lambda np, x: np.median(x, axis=1)),
        lambda x: np.median(x, axis=1),
        median_numba,
        lambda torch: lambda x: torch.quantile(x, 0.5, dim=1),
        compiled=False,
    )


def median_numba(x):
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        ordered = np.sort(x[i])
        middle = x.shape[1] // 2
        out[i] = ordered[middle] if x.shape[1] % 2 else (ordered[middle - 1] + ordered[middle]) * f4(0.5)
    return out


@GROUP.row("searchsorted", n=50)
def searchsorted(rng, n=1_000_000):
    return Row(
        "places of 1M f32 among 1,000 in order",
        [np.sort(floats(rng, 1000)), floats(rng, n)],
        over(lambda np, a, v: np.searchsorted(a, v)),
        np.searchsorted,
        searchsorted_numba,
        lambda torch: torch.searchsorted,
        tolerance=0,
    )


def searchsorted_numba(ordered, values):
    out = np.empty(values.size, np.int32)
    for i in prange(values.size):
        low, high = 0, ordered.size
        while low < high:
            middle = (low + high) // 2
            if ordered[middle] < values[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


@CUMULATIVE.row("cumsum", n=50)
def cumsum(rng, n=1_000_000):
    return Row(
        "cumulative sum of 1M f32",
        [rng.random(n).astype(f4)],
        over(lambda np, x: np.cumsum(x)),
        np.cumsum,
        cumsum_numba,
        lambda torch: lambda x: torch.cumsum(x, 0),
        tolerance=2e-3,
    )


def cumsum_numba(x):
    out = np.empty_like(x)
    total = f4(0)
    for i in range(x.size):
        total += x[i]
        out[i] = total
    return out


@CUMULATIVE.row("cumsum-rows", n=8)
def cumsum_rows(rng, n=1024):
    return Row(
        "cumulative sums of rows, 1024x1024 f32",
        [rng.random((n, n)).astype(f4)],
        over(lambda np, x: np.cumsum(x, axis=1)),
        lambda x: np.cumsum(x, axis=1),
        cumsum_rows_numba,
        lambda torch: lambda x: torch.cumsum(x, 1),
    )


def cumsum_rows_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        total = f4(0)
        for j in range(x.shape[1]):
            total += x[i, j]
            out[i, j] = total
    return out


@CUMULATIVE.row("cumsum-columns", n=8)
def cumsum_columns(rng, n=1024):
    return Row(
        "cumulative sums of columns, 1024x1024 f32",
        [rng.random((n, n)).astype(f4)],
        over(lambda np, x: np.cumsum(x, axis=0)),
        lambda x: np.cumsum(x, axis=0),
        cumsum_columns_numba,
        lambda torch: lambda x: torch.cumsum(x, 0),
    )


def cumsum_columns_numba(x):
    out = np.empty_like(x)
    strips = 8
    width = (x.shape[1] + strips - 1) // strips
    for s in prange(strips):
        low, high = s * width, min(x.shape[1], (s + 1) * width)
        for j in range(low, high):
            out[0, j] = x[0, j]
        for i in range(1, x.shape[0]):
            for j in range(low, high):
                out[i, j] = out[i - 1, j] + x[i, j]
    return out


@CUMULATIVE.row("cummax", n=8)
def cummax(rng, n=1024):
    return Row(
        "largest so far, rows of 1024x1024 f32",
        [floats(rng, n, n)],
        lambda jax, jnp: lambda x: jax.lax.cummax(x, axis=1),
        lambda x: np.maximum.accumulate(x, axis=1),
        cummax_numba,
        lambda torch: lambda x: torch.cummax(x, 1)[0],
    )


def cummax_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        high = x[i, 0]
        for j in range(x.shape[1]):
            high = max(high, x[i, j])
            out[i, j] = high
    return out


@CUMULATIVE.row("linear-recurrence", n=20)
def recurrence(rng, n=4096):
    def text(jax, jnp):
        def join(one, other):
            return one[0] * other[0], other[0] * one[1] + other[1]

        return lambda a, b: jax.lax.associative_scan(join, (a, b))[1]

    return Row(
        "associative scan: h = a*h + b, 4,096 steps of 64 f32",
        [rng.uniform(0.5, 1, (n, 64)).astype(f4), floats(rng, n, 64)],
        text,
        None,
        recurrence_numba,
        tolerance=1e-3,
    )


def recurrence_numba(a, b):
    out = np.empty_like(b)
    for j in range(b.shape[1]):
        out[0, j] = b[0, j]
    for i in range(1, b.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = a[i, j] * out[i - 1, j] + b[i, j]
    return out


@CUMULATIVE.row("normalised-cumsum", n=8)
def normalised(rng, n=1024):
    def f(np, x):
        e = np.exp(x)
        return np.cumsum(e, 1) / e.sum(1)[:, None]

    return Row(
        "distribution function of rows, 1024x1024 f32",
        [floats(rng, n, n)],
        over(f),
        lambda x: f(np, x),
        normalised_numba,
        lambda torch: lambda x: f(torch, x),
    )


def normalised_numba(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j])
        total = f4(0)
        for j in range(x.shape[1]):
            total += out[i, j]
            out[i, j] = total
        scale = f4(1) / total
        for j in range(x.shape[1]):
            out[i, j] *= scale
    return out

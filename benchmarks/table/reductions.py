"""Reductions: of all elements, of rows, of columns, several of the same array, with what comes before and after."""

from __future__ import annotations

import numpy as np

from .declare import Group, Row, floats, over, prange

GROUP = Group("reductions")
f4 = np.float32


@GROUP.row("sum-all", n=8)
def sum_all(rng, n=2048):
    return Row(
        "sum of 2048x2048 f32, all",
        [floats(rng, n, n) + f4(0.5)],
        over(lambda np, x: np.sum(x)),
        lambda x: x.sum(),
        sum_all_numba,
        lambda torch: torch.sum,
    )


def sum_all_numba(x):
    total = f4(0)
    for i in prange(x.shape[0]):
        row = f4(0)  # a separate variable, so that the inner loop is vectorised
        for j in range(x.shape[1]):
            row += x[i, j]
        total += row
    return total


@GROUP.row("sum-0", n=8)
def sum_columns(rng, n=2048):
    return Row(
        "sum of 2048x2048 f32, axis 0",
        [floats(rng, n, n) + f4(0.5)],
        over(lambda np, x: np.sum(x, axis=0)),
        lambda x: x.sum(0),
        sum_columns_numba,
        lambda torch: lambda x: torch.sum(x, 0),
    )


def sum_columns_numba(x):
    strips = 8
    width = (x.shape[1] + strips - 1) // strips
    out = np.zeros(x.shape[1], np.float32)
    for s in prange(strips):
        for i in range(x.shape[0]):
            for j in range(s * width, min(x.shape[1], (s + 1) * width)):
                out[j] += x[i, j]
    return out


@GROUP.row("sum-1", n=8)
def sum_rows(rng, n=2048):
    return Row(
        "sum of 2048x2048 f32, axis 1",
        [floats(rng, n, n) + f4(0.5)],
        over(lambda np, x: np.sum(x, axis=1)),
        lambda x: x.sum(1),
        sum_rows_numba,
        lambda torch: lambda x: torch.sum(x, 1),
    )


def sum_rows_numba(x):
    out = np.empty(x.shape[0], np.float32)
    for i in prange(x.shape[0]):
        total = f4(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
    return out


@GROUP.row("sum-middle", n=4)
def sum_middle(rng, n=64):
    return Row(
        "max of 64x256x64 f32, axis 1",
        [floats(rng, n, 4 * n, n)],
        over(lambda np, x: np.max(x, axis=1)),
        lambda x: x.max(1),
        sum_middle_numba,
        lambda torch: lambda x: torch.amax(x, 1),
    )


def sum_middle_numba(x):
    out = np.empty((x.shape[0], x.shape[2]), x.dtype)
    for i in prange(x.shape[0]):
        for k in range(x.shape[2]):
            out[i, k] = x[i, 0, k]
        for j in range(1, x.shape[1]):
            for k in range(x.shape[2]):
                out[i, k] = max(out[i, k], x[i, j, k])
    return out


@GROUP.row("sum-and-max", n=8)
def sum_and_max(rng, n=2048):
    def f(np, x):
        return x.sum(), x.max()

    return Row(
        "sum and largest of 2048x2048 f32",
        [floats(rng, n, n)],
        over(f),
        lambda x: f(np, x),
        sum_and_max_numba,
        lambda torch: lambda x: f(torch, x),
    )


def sum_and_max_numba(x):
    sums, highest = np.empty(x.shape[0], f4), np.empty(x.shape[0], f4)
    for i in prange(x.shape[0]):
        total, high = f4(0), x[i, 0]
        for j in range(x.shape[1]):
            total += x[i, j]
            high = max(high, x[i, j])
        sums[i], highest[i] = total, high
    return sums.sum(), highest.max()


@GROUP.row("mean-variance-0", n=8)
def moments(rng, n=1024):
    def f(np, x):
        return np.mean(x, axis=0), np.var(x, axis=0)

    return Row(
        "mean and variance of 2048x1024 f32, axis 0",
        [floats(rng, 2 * n, n)],
        over(f),
        lambda x: f(np, x),
        moments_numba,
        lambda torch: lambda x: (x.mean(0), x.var(0, correction=0)),
    )


def moments_numba(x):
    strips = 8
    width = (x.shape[1] + strips - 1) // strips
    mean, variance = np.zeros(x.shape[1], f4), np.zeros(x.shape[1], f4)
    over_rows = f4(1) / f4(x.shape[0])
    for s in prange(strips):
        low, high = s * width, min(x.shape[1], (s + 1) * width)
        for i in range(x.shape[0]):
            for j in range(low, high):
                mean[j] += x[i, j]
        for j in range(low, high):
            mean[j] *= over_rows
        for i in range(x.shape[0]):
            for j in range(low, high):
                variance[j] += (x[i, j] - mean[j]) * (x[i, j] - mean[j])
        for j in range(low, high):
            variance[j] *= over_rows
    return mean, variance


@GROUP.row("variance-rows", n=8)
def variance_rows(rng, n=1024):
    return Row(
        "standard deviation of 1024x1024 f32, axis 1",
        [floats(rng, n, n)],
        over(lambda np, x: np.std(x, axis=1)),
        lambda x: np.std(x, axis=1),
        variance_rows_numba,
        lambda torch: lambda x: torch.std(x, 1, correction=0),
    )


def variance_rows_numba(x):
    out = np.empty(x.shape[0], f4)
    size = f4(x.shape[1])
    for i in prange(x.shape[0]):
        total = f4(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / size
        square = f4(0)
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        out[i] = np.sqrt(square / size)
    return out


@GROUP.row("dot-of-chains", n=50)
def dot_of_chains(rng, n=1_000_003):
    def f(np, x, y):
        return np.sum(np.exp(-np.abs(x)) * np.tanh(y))

    return Row(
        "sum of exp(-abs(x)) * tanh(y), 1,000,003 f32",
        [floats(rng, n), floats(rng, n) + f4(0.5)],
        over(f),
        lambda x, y: f(np, x, y),
        dot_of_chains_numba,
        lambda torch: lambda x, y: f(torch, x, y),
    )


def dot_of_chains_numba(x, y):
    total = f4(0)
    for i in prange(x.size):
        total += np.exp(-abs(x[i])) * np.tanh(y[i])
    return total


@GROUP.row("logsumexp", n=8)
def logsumexp(rng, n=1024):
    def f(x):
        high = x.max(axis=1)
        return np.log(np.exp(x - high[:, None]).sum(axis=1)) + high

    return Row(
        "log of sum of exp, rows of 1024x1024 f32",
        [floats(rng, n, n)],
        lambda jax, jnp: lambda x: jax.nn.logsumexp(x, axis=1),
        f,
        logsumexp_numba,
        lambda torch: lambda x: torch.logsumexp(x, 1),
    )


def logsumexp_numba(x):
    out = np.empty(x.shape[0], f4)
    for i in prange(x.shape[0]):
        high = x[i, 0]
        for j in range(x.shape[1]):
            high = max(high, x[i, j])
        total = f4(0)
        for j in range(x.shape[1]):
            total += np.exp(x[i, j] - high)
        out[i] = np.log(total) + high
    return out


@GROUP.row("argmax-rows", n=8)
def argmax_rows(rng, n=1024):
    return Row(
        "argmax of each row of 1024x1024 f32",
        [floats(rng, n, n)],
        over(lambda np, x: np.argmax(x, axis=1)),
        lambda x: np.argmax(x, axis=1),
        argmax_rows_numba,
        lambda torch: lambda x: torch.argmax(x, 1),
    )


def argmax_rows_numba(x):
    out = np.empty(x.shape[0], np.int32)
    for i in prange(x.shape[0]):
        best = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
        out[i] = best
    return out


@GROUP.row("argmin-columns", n=8)
def argmin_columns(rng, n=1024):
    return Row(
        "argmin of each column of 1024x1024 f32",
        [floats(rng, n, n)],
        over(lambda np, x: np.argmin(x, axis=0)),
        lambda x: np.argmin(x, axis=0),
        argmin_columns_numba,
        lambda torch: lambda x: torch.argmin(x, 0),
    )


def argmin_columns_numba(x):
    strips = 8
    width = (x.shape[1] + strips - 1) // strips
    out, least = np.zeros(x.shape[1], np.int32), x[0].copy()
    for s in prange(strips):
        for i in range(1, x.shape[0]):
            for j in range(s * width, min(x.shape[1], (s + 1) * width)):
                if x[i, j] < least[j]:
                    least[j] = x[i, j]
                    out[j] = i
    return out


@GROUP.row("distances", n=8)
def distances(rng, n=512):
    def f(np, x, y):
        return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)

    return Row(
        "squared distances of 512 and 512 points, 16 dimensions, f32",
        [floats(rng, n, 16), floats(rng, n, 16)],
        over(f),
        lambda x, y: f(np, x, y),
        distances_numba,
        lambda torch: lambda x, y: f(torch, x, y),
    )


def distances_numba(x, y):
    out = np.empty((x.shape[0], y.shape[0]), f4)
    for i in prange(x.shape[0]):
        for j in range(y.shape[0]):
            total = f4(0)
            for k in range(x.shape[1]):
                total += (x[i, k] - y[j, k]) * (x[i, k] - y[j, k])
            out[i, j] = total
    return out


@GROUP.row("count", n=50)
def count(rng, n=4_000_000):
    def f(np, x):
        return np.sum((x > -1) & (x < 0.5))

    return Row(
        "how many of 4M f32 are between two numbers",
        [floats(rng, n)],
        over(f),
        lambda x: f(np, x),
        count_numba,
        lambda torch: lambda x: f(torch, x),
    )


def count_numba(x):
    total = 0
    for i in prange(x.size):
        total += x[i] > f4(-1) and x[i] < f4(0.5)
    return total

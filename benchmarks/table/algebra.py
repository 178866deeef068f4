"""Linear algebra of small matrices and in batches, and Fourier transforms."""

from __future__ import annotations

import numpy as np

from .declare import Group, Row, floats, over, prange

GROUP = Group("linear algebra and FFT")
f4 = np.float32


def positive(rng, *dimensions):
    """Positive definite matrices."""
    a = floats(rng, *dimensions)
    return (a @ a.swapaxes(-1, -2) + dimensions[-1] * np.eye(dimensions[-1], dtype=f4)).astype(f4)


def cholesky(name, *dimensions, numba=None):
    def factory(rng, count=dimensions[0]):
        shape = (count, *dimensions[1:])
        what = "x".join(map(str, dimensions))
        return Row(
            f"Cholesky of {what} f32",
            [positive(rng, *shape)],
            over(lambda np, a: np.linalg.cholesky(a)),
            np.linalg.cholesky,
            numba,
            lambda torch: torch.linalg.cholesky,
            compiled=False,
        )

    GROUP.row(name, **({"count": 3} if len(dimensions) == 3 else {}))(factory)


def cholesky_numba(a):
    return np.linalg.cholesky(a)


def cholesky_batch_numba(a):
    out = np.zeros_like(a)
    n = a.shape[1]
    for k in prange(a.shape[0]):
        for i in range(n):
            for j in range(i + 1):
                total = a[k, i, j]
                for l in range(j):  # noqa: E741
                    total -= out[k, i, l] * out[k, j, l]
                out[k, i, j] = np.sqrt(total) if i == j else total / out[k, j, j]
    return out


cholesky("cholesky-8", 8, 8, numba=cholesky_numba)
cholesky("cholesky-1000x8", 1000, 8, 8, numba=cholesky_batch_numba)
cholesky("cholesky-256", 256, 256, numba=cholesky_numba)


def solve(name, *dimensions, numba=None):
    def factory(rng, count=dimensions[0]):
        a = positive(rng, *(count, *dimensions[1:]))
        b = floats(rng, *a.shape[:-1], 1) if len(dimensions) == 3 else floats(rng, a.shape[-1], 4)
        what = "x".join(map(str, dimensions))
        return Row(
            f"linear systems {what} f32",
            [a, b],
            over(lambda np, a, b: np.linalg.solve(a, b)),
            np.linalg.solve,
            numba,
            lambda torch: torch.linalg.solve,
            compiled=False,
            tolerance=1e-3,
        )

    GROUP.row(name, **({"count": 3} if len(dimensions) == 3 else {}))(factory)


def solve_numba(a, b):
    return np.linalg.solve(a, b)


def solve_batch_numba(a, b):
    out = b.copy()
    n = a.shape[1]
    for k in prange(a.shape[0]):
        m = a[k].copy()
        for i in range(n):
            best = i
            for r in range(i + 1, n):
                if abs(m[r, i]) > abs(m[best, i]):
                    best = r
            for j in range(n):
                m[i, j], m[best, j] = m[best, j], m[i, j]
            out[k, i, 0], out[k, best, 0] = out[k, best, 0], out[k, i, 0]
            for r in range(i + 1, n):
                factor = m[r, i] / m[i, i]
                for j in range(i + 1, n):
                    m[r, j] -= factor * m[i, j]
                out[k, r, 0] -= factor * out[k, i, 0]
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                out[k, i, 0] -= m[i, j] * out[k, j, 0]
            out[k, i, 0] /= m[i, i]
    return out


solve("solve-8", 8, 8, numba=solve_numba)
solve("solve-1000x4", 1000, 4, 4, numba=solve_batch_numba)
solve("solve-200", 200, 200, numba=solve_numba)


@GROUP.row("inverse-5000x3", count=4)
def inverses(rng, count=5000):
    return Row(
        "inverses of 5000x3x3 f32",
        [positive(rng, count, 3, 3)],
        over(lambda np, a: np.linalg.inv(a)),
        np.linalg.inv,
        inverses_numba,
        lambda torch: torch.linalg.inv,
        compiled=False,
        tolerance=1e-3,
    )


def inverses_numba(a):
    out = np.empty_like(a)
    for k in prange(a.shape[0]):
        m = a[k]
        c0 = m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1]
        c1 = m[1, 2] * m[2, 0] - m[1, 0] * m[2, 2]
        c2 = m[1, 0] * m[2, 1] - m[1, 1] * m[2, 0]
        scale = f4(1) / (m[0, 0] * c0 + m[0, 1] * c1 + m[0, 2] * c2)
        out[k, 0, 0] = c0 * scale
        out[k, 1, 0] = c1 * scale
        out[k, 2, 0] = c2 * scale
        out[k, 0, 1] = (m[0, 2] * m[2, 1] - m[0, 1] * m[2, 2]) * scale
        out[k, 1, 1] = (m[0, 0] * m[2, 2] - m[0, 2] * m[2, 0]) * scale
        out[k, 2, 1] = (m[0, 1] * m[2, 0] - m[0, 0] * m[2, 1]) * scale
        out[k, 0, 2] = (m[0, 1] * m[1, 2] - m[0, 2] * m[1, 1]) * scale
        out[k, 1, 2] = (m[0, 2] * m[1, 0] - m[0, 0] * m[1, 2]) * scale
        out[k, 2, 2] = (m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]) * scale
    return out


@GROUP.row("determinant", count=4)
def determinants(rng, count=1000):
    return Row(
        "determinants of 1000x6x6 f32",
        [floats(rng, count, 6, 6)],
        over(lambda np, a: np.linalg.det(a)),
        np.linalg.det,
        determinants_numba,
        lambda torch: torch.linalg.det,
        compiled=False,
        tolerance=1e-3,
    )


def determinants_numba(a):
    out = np.empty(a.shape[0], a.dtype)
    n = a.shape[1]
    for k in prange(a.shape[0]):
        m = a[k].copy()
        value = f4(1)
        for i in range(n):
            best = i
            for r in range(i + 1, n):
                if abs(m[r, i]) > abs(m[best, i]):
                    best = r
            if best != i:
                value = -value
                for j in range(n):
                    m[i, j], m[best, j] = m[best, j], m[i, j]
            value *= m[i, i]
            for r in range(i + 1, n):
                factor = m[r, i] / m[i, i]
                for j in range(i + 1, n):
                    m[r, j] -= factor * m[i, j]
        out[k] = value
    return out


@GROUP.row("eigenvalues-32")
def eigenvalues(rng, n=32):
    return Row(
        f"eigenvalues of a symmetric {n}x{n} f32",
        [positive(rng, n, n)],
        over(lambda np, a: np.linalg.eigvalsh(a)),
        np.linalg.eigvalsh,
        eigenvalues_numba,
        lambda torch: torch.linalg.eigvalsh,
        compiled=False,
    )


def eigenvalues_numba(a):
    return np.linalg.eigvalsh(a)


@GROUP.row("singular-values-64")
def singular_values(rng, n=64):
    return Row(
        f"singular values of {n}x{n} f32",
        [floats(rng, n, n)],
        over(lambda np, a: np.linalg.svd(a, compute_uv=False)),
        lambda a: np.linalg.svd(a, compute_uv=False),
        singular_numba,
        lambda torch: torch.linalg.svdvals,
        compiled=False,
    )


def singular_numba(a):
    return np.linalg.svd(a)[1]


def fourier(name, *dimensions, real=False, two=False):
    def factory(rng, dimensions=dimensions):
        x = floats(rng, *dimensions)
        if not real:
            x = (x + 1j * floats(rng, *dimensions)).astype(np.complex64)

        def f(np, x):
            return np.fft.fft2(x) if two else np.fft.rfft(x) if real else np.fft.fft(x)

        what = f"{'x'.join(map(str, dimensions))} {'f32' if real else 'c64'}"
        return Row(
            f"FFT of {what}{', both axes' * two}",
            [x],
            over(f),
            lambda x: f(np, x),
            None,
            lambda torch: lambda x: f(torch, x),
            compiled=False,
        )

    GROUP.row(name)(factory)


fourier("fft-64", 64)
fourier("fft-1000x128", 1000, 128)
fourier("fft-65536", 65536)
fourier("rfft-1024x1024", 1024, 1024, real=True)
fourier("fft2-256x256", 256, 256, two=True)

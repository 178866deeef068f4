"""Eigenvalues of many small symmetric matrices in lanes: as accurate as LAPACK's, and each matrix on its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

COUNT = 21
"""More than one vector, and some left."""


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal((COUNT, n, n))


def cluster(rng: np.random.Generator, n: int) -> np.ndarray:
    """Eigenvalues that differ by rounding errors of f32."""
    q = np.linalg.qr(normal(rng, n))[0]
    return (q * (1 + 1e-7 * np.arange(n))) @ q.swapaxes(1, 2)


def graded(rng: np.random.Generator, n: int) -> np.ndarray:
    scale = 10.0 ** -np.arange(n)
    return normal(rng, n) * scale * scale[:, None]


def of_rank_one(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.standard_normal((COUNT, n, 1))
    return x @ x.swapaxes(1, 2)


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": normal, "cluster": cluster, "graded": graded, "rank one": of_rank_one,
    "near overflow": lambda rng, n: normal(rng, n) * 1e36, "near underflow": lambda rng, n: normal(rng, n) * 1e-36,
}  # fmt: skip


def solved(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with hloom.enable_x64(True):
        w, v = hloom.jit(jnp.linalg.eigh)(a)
    return np.asarray(w), np.asarray(v)


def drawn(kind: str, n: int, dtype: type) -> np.ndarray:
    a = KINDS[kind](np.random.default_rng(n), n)
    return ((a + a.swapaxes(1, 2)) / 2).astype(dtype)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 16])
def test_backward_errors(n: int, kind: str, dtype: type) -> None:
    """The residuals, in longdouble, are small compared with the matrix."""
    a = drawn(kind, n, dtype)
    eps, wide = np.finfo(dtype).eps, a.astype(np.longdouble)
    size = np.abs(wide).max((1, 2)) * n
    w, v = solved(a)
    assert w.dtype == v.dtype == dtype
    assert (np.diff(w) >= 0).all()
    rest = np.abs(wide @ v - v * w[:, None, :].astype(np.longdouble)).max((1, 2))
    assert (rest <= 4 * eps * size).all()
    v = v.astype(np.longdouble)
    assert np.abs(v.swapaxes(1, 2) @ v - np.eye(n)).max() <= (n + 4) * eps
    with hloom.enable_x64(True):
        alone = np.asarray(hloom.jit(jnp.linalg.eigvalsh)(a))
    np.testing.assert_array_equal(alone, w)


def test_diagonals_are_their_eigenvalues() -> None:
    values = np.random.default_rng(0).integers(-3, 4, (COUNT, 5)).astype(np.float32)
    w, v = solved(values[:, :, None] * np.eye(5, dtype=np.float32))
    np.testing.assert_array_equal(w, np.sort(values))
    np.testing.assert_array_equal(np.sort(np.abs(v)), np.sort(np.broadcast_to(np.eye(5), v.shape)))


@pytest.mark.parametrize("lower", [True, False])
def test_one_triangle_is_read(lower: bool) -> None:
    a = drawn("normal", 4, np.float32)
    given = np.where(np.tri(4, k=0 if lower else -1, dtype=bool) == lower, a, np.nan).astype(np.float32)
    solve = hloom.jit(lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False))
    v, w = map(np.asarray, solve(given))
    np.testing.assert_array_equal(w, solved(a)[0])
    assert np.isfinite(v).all()


def test_each_matrix_is_on_its_own() -> None:
    """Results are the same bits at every place of a matrix; and matrices that are not finite give NaN, no others."""
    a = drawn("normal", 4, np.float32)
    w, v = solved(a)
    back = solved(a[::-1].copy())
    np.testing.assert_array_equal(back[0][::-1], w)
    np.testing.assert_array_equal(back[1][::-1], v)
    bad = a.copy()
    bad[3, 1, 1], bad[12, 2, 0], bad[12, 0, 2] = np.nan, np.inf, np.inf
    w_bad, v_bad = solved(bad)
    for i in range(COUNT):
        if i in (3, 12):
            assert np.isnan(w_bad[i]).all() and np.isnan(v_bad[i]).all()
        else:
            np.testing.assert_array_equal(w_bad[i], w[i])
            np.testing.assert_array_equal(v_bad[i], v[i])


def test_one_kernel_for_all_batches() -> None:
    def kernels(count: int) -> list[str]:
        text = str(hloom.jit(jnp.linalg.eigh).lower(jnp.zeros((count, 3, 3))).compile().kernels())
        return [line for line in text.splitlines() if not line.startswith("#")]

    assert any("symmetric_lanes" in line for line in kernels(20))
    assert kernels(20) == kernels(500)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 32])
def test_eigenvalues_of_one_matrix(n: int, kind: str, dtype: type) -> None:
    """A kernel finds them, and they are as close to the exact ones as LAPACK's are."""
    a = drawn(kind, n, dtype)[:3]
    exact = np.linalg.eigvalsh(a.astype(np.float64))
    size = np.abs(exact).max(1) + np.finfo(dtype).tiny
    with hloom.enable_x64(True):
        found = [np.asarray(hloom.jit(jnp.linalg.eigvalsh)(each)) for each in a]
        kernels = str(hloom.jit(jnp.linalg.eigvalsh).lower(a[0]).compile().kernels())
    assert "eigenvalues" in kernels
    assert all(w.dtype == dtype and (np.diff(w) >= 0).all() for w in found)
    assert (np.abs(found - exact).max(1) <= (n + 4) * np.finfo(dtype).eps * size).all()


ONES: dict[str, np.ndarray] = {
    "zeros": np.zeros((9, 9)), "identity": np.eye(9), "ones": np.ones((9, 9)),
    "diagonal": np.diag(np.arange(9.0)[::-1]), "zero diagonal": np.eye(9, k=1) + np.eye(9, k=-1),
    "blocks": np.kron(np.eye(3), np.array([[1, 2, 0], [2, 1, 0], [0, 0, 3]])),
    "far apart": np.diag(10.0 ** -np.arange(0, 27, 3)) + 1e-20 * (np.eye(9, k=2) + np.eye(9, k=-2)),
    "one large": np.diag([1e30] + [1e-30] * 8) + 1e-25 * (np.eye(9, k=1) + np.eye(9, k=-1)),
}  # fmt: skip


@pytest.mark.parametrize("name", ONES)
def test_eigenvalues_of_special_matrices(name: str) -> None:
    a = ONES[name].astype(np.float32)
    exact = np.linalg.eigvalsh(a.astype(np.float64))
    found = np.asarray(hloom.jit(jnp.linalg.eigvalsh)(a))
    assert np.abs(found - exact).max() <= 8 * np.finfo(np.float32).eps * max(np.abs(exact).max(), 1e-38)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_eigenvalues_of_a_matrix_that_is_not_finite_are_nan(bad: float) -> None:
    a = drawn("normal", 7, np.float32)[0]
    a[4, 2] = a[2, 4] = bad
    assert np.isnan(np.asarray(hloom.jit(jnp.linalg.eigvalsh)(a))).all()


@pytest.mark.parametrize("lower", [True, False])
def test_eigenvalues_read_one_triangle(lower: bool) -> None:
    a = drawn("normal", 9, np.float32)[0]
    given = np.where(np.tri(9, k=0 if lower else -1, dtype=bool) == lower, a, np.nan).astype(np.float32)
    solve = hloom.jit(lambda x: hloom.scipy.linalg.eigh(x, lower=lower, eigvals_only=True))
    np.testing.assert_allclose(np.asarray(solve(given)), np.linalg.eigvalsh(a.astype(np.float64)), rtol=0, atol=1e-5)

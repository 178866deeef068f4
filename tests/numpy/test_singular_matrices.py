"""Determinants and functions of singular matrices: values, and derivatives where there are some."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hloom
import hloom.numpy as jnp
import hloom.scipy.linalg as linalg

pytestmark = pytest.mark.usefixtures("evaluator")
"""The rules are tested here, not the code of the operations in them: test_ops.py has that."""

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def adjugate(x: NDArray) -> NDArray:
    """By cofactors."""
    n = len(x)
    minors = [
        [np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) * (-1) ** (i + j) for i in range(n)] for j in range(n)
    ]
    return np.array(minors)


def of_rank(n: int, rank: int, kind: str, dtype: Any) -> NDArray:
    """A random product; or zeros, exactly, but for the last rows and columns, or for some."""
    u, v = (RNG.standard_normal((n, n)) + (1j if dtype is complex else 0) * RNG.standard_normal((n, n)) for _ in "uv")
    if kind == "product":
        return np.asarray(u[:, :rank] @ v[:rank])
    found = np.zeros((n, n), u.dtype)
    found[n - rank :, n - rank :] = u[:rank, :rank]
    return found if kind == "zeros first" else found[RNG.permutation(n)][:, RNG.permutation(n)]


MATRICES = {
    f"{n} rows, rank {rank}, {kind}, {dtype.__name__}": of_rank(n, rank, kind, dtype)
    for n in (3, 4, 5, 7)
    for rank in sorted({0, 1, n - 2, n - 1, n})
    for kind in ("product", "zeros first", "anywhere")
    for dtype in (float, complex)
}
# both of its pivots in the middle are 0, and its rank is 4
MATRICES["nilpotent"] = np.diag(np.ones(4), 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name[0] == "7" else ()) for name in MATRICES]
)
def test_derivatives_of_det(name: str) -> None:
    x = MATRICES[name]
    direction = RNG.standard_normal(x.shape).astype(x.dtype)
    holomorphic = x.dtype.kind == "c"
    expected, step = adjugate(x), 1e-4
    moved = (adjugate(x + step * direction) - adjugate(x - step * direction)) / (2 * step)
    with hloom.enable_x64(True):
        gradient = hloom.grad(jnp.linalg.det, holomorphic=holomorphic)
        scale = 1 + np.abs(expected).max()
        for found in (gradient(x), hloom.jit(gradient)(x)):
            np.testing.assert_allclose(np.asarray(found), expected.T, atol=1e-10 * scale)
        tangent = hloom.jvp(jnp.linalg.det, (x,), (direction,))[1]
        np.testing.assert_allclose(complex(tangent), np.trace(expected @ direction), atol=1e-9 * scale)
        second = hloom.jvp(gradient, (x,), (direction,))[1]
        np.testing.assert_allclose(np.asarray(second), moved.T, atol=1e-5 * (1 + np.abs(moved).max()))


def test_batches_of_singular_and_other_matrices() -> None:
    batch = np.stack([of_rank(5, rank, "zeros first", float) for rank in range(6)]).reshape(2, 3, 5, 5)
    expected = np.array([adjugate(x).T for x in batch.reshape(6, 5, 5)]).reshape(batch.shape)
    with hloom.enable_x64(True):
        found = hloom.grad(lambda x: jnp.linalg.det(x).sum())(batch)
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-10)
        mapped = hloom.vmap(hloom.vmap(hloom.grad(jnp.linalg.det)))(batch)
        np.testing.assert_allclose(np.asarray(mapped), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("n", "rank"), [(4, 0), *(pytest.param(*c, marks=pytest.mark.slow) for c in ((5, 1), (6, 2), (6, 3), (6, 6)))]
)
def test_derivatives_of_det_up_to_the_fourth(n: int, rank: int) -> None:
    """det(x + t e) is a polynomial in t."""
    x, e = of_rank(n, rank, "zeros first", float), RNG.standard_normal((n, n))
    ts = np.linspace(-1, 1, n + 1)
    coefficients = np.polyfit(ts, [np.linalg.det(x + t * e) for t in ts], n)[::-1]
    with hloom.enable_x64(True):

        def f(t: Any) -> Any:
            return jnp.linalg.det(x + t * e)

        factorial = 1
        for order in range(1, 5):
            f, factorial = hloom.grad(f), factorial * order
            np.testing.assert_allclose(float(f(0.0)), coefficients[order] * factorial, atol=1e-8)


ROOTS: dict[str, Any] = {
    "one eigenvalue": np.diag([0.0, 0, 9]),
    "zeros apart": np.diag([0.0, 4, 0, 0]),
    "zero": np.zeros((3, 3)),
    "triangle": np.array([[0, 0, 1], [0, 4, 2], [0, 0, 9.0]]),
    "zeros and a corner": np.array([[0, 0, 2], [0, 0, 0], [0, 0, 4.0]]),
    "ones": np.ones((3, 3)),
    "negative": np.diag([-1.0, 0, 0]),
    "imaginary": np.diag([0, 0, 1j]),
}


@pytest.mark.parametrize("name", ROOTS)
def test_square_roots(name: str) -> None:
    x = ROOTS[name]
    with hloom.enable_x64(True):
        for found in (linalg.sqrtm(x), hloom.jit(linalg.sqrtm)(x)):
            root = np.asarray(found)
            np.testing.assert_allclose(root @ root, x, atol=1e-12)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the matrix is singular
                expected = scipy.linalg.sqrtm(x)
            if np.isfinite(expected).all():  # SciPy 1.18 divides by zero
                np.testing.assert_allclose(root, expected, atol=1e-7)


def test_there_is_no_square_root() -> None:
    for x in (np.array([[0.0, 1], [0, 0]]), np.eye(4, k=1), np.eye(3, k=2)[:3, :3]):
        assert np.isnan(np.asarray(linalg.sqrtm(x))).all()


FUNCTIONS = {
    "equal eigenvalues": np.diag([2.0, 2, 3]),
    "a block": np.array([[2, 1, 0], [0, 2, 0], [0, 0, 3.0]]),
    "close to zero": np.diag([1e-9, 1, 2]) + np.triu(np.ones((3, 3)), 1),
    "apart": RNG.standard_normal((4, 4)),
    "complex": RNG.standard_normal((3, 3)) + 1j,
    "one": np.array([[3.0]]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_funm_and_its_estimate_of_the_error(name: str) -> None:
    x = FUNCTIONS[name]
    with hloom.enable_x64(True):
        found, error = linalg.funm(x, jnp.exp, disp=False)
        expected, estimate = scipy.linalg.funm(x, lambda w: np.exp(w + 0j), disp=False)
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)
        np.testing.assert_allclose(float(error), estimate, rtol=1e-6)
        assert np.isinf(linalg.funm(x, lambda w: w + np.nan, disp=False)[1])

"""Gradients at matrices with equal singular values or eigenvalues, of functions that do not depend on which vectors
are chosen for them: finite and right. The gradients of the vectors themselves are not finite there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
import hloom.scipy.linalg as linalg
from hloom.scipy.spatial.transform import Rotation

pytestmark = pytest.mark.usefixtures("evaluator")
"""The rules are tested here, not the code of the operations in them: test_ops.py has that."""

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def orthonormal(m: int, n: int, dtype: Any) -> NDArray:
    x = RNG.standard_normal((m, m)) + (1j * RNG.standard_normal((m, m)) if dtype is complex else 0)
    return np.asarray(np.linalg.qr(x)[0][:, :n])


def with_values(m: int, n: int, values: Any, dtype: Any = float) -> NDArray:
    k = min(m, n)
    return np.asarray((orthonormal(m, k, dtype) * values) @ orthonormal(n, k, dtype).conj().T)


def hermitian(values: Any, dtype: Any = float) -> NDArray:
    v = orthonormal(len(values), len(values), dtype)
    return np.asarray((v * values) @ v.conj().T)


FULL_RANK: dict[str, NDArray] = {
    "identity": np.eye(3),
    "blocks": np.diag([2.0, 2, 1, 1]),
    "a rotation": orthonormal(4, 4, float),
    "signs": np.diag([-2.0, 2, 2]),
    "blocks that are turned": with_values(4, 4, [3.0, 3, 3, 1]),
    "tall": with_values(5, 3, [2.0, 2, 1]),
    "tall identity": np.eye(4, 2),
    "wide": with_values(3, 5, [2.0, 1, 1]),
    "wide identity": np.eye(2, 4),
    "different": with_values(4, 3, [4.0, 2, 1]),
    "unitary": orthonormal(3, 3, complex),
    "complex blocks": with_values(4, 4, [3.0, 3, 1, 1], complex),
    "complex, tall": with_values(4, 2, [2.0, 2], complex),
    "complex, wide": with_values(2, 4, [2.0, 2], complex),
    "batch": np.stack([np.eye(3), np.diag([2.0, 2, 1]), orthonormal(3, 3, float)]),
    "one by one": np.array([[2.0]]),
}
LOW_RANK: dict[str, NDArray] = {
    "one of three": np.diag([2.0, 0, 0]),
    "two of five": with_values(5, 5, [2.0, 2, 0, 0, 0]),
    "tall, one of three": with_values(5, 3, [2.0, 0, 0]),
    "wide, one of three": np.asarray(np.diag([1.0, 0, 0])[:, [0, 1, 2, 1]]),
    "complex, two of four": with_values(4, 4, [2.0, 2, 0, 0], complex),
}
HERMITIAN: dict[str, NDArray] = {
    "identity": np.eye(3),
    "blocks": np.diag([1.0, 1, 2, 2]),
    "blocks that are turned": hermitian([1.0, 1, 1, 2]),
    "indefinite": hermitian([-1.0, -1, 1, 1]),
    "zeros": np.zeros((3, 3)),
    "complex": hermitian([1.0, 1, 2, 2], complex),
    "batch": np.stack([np.eye(3), hermitian([1.0, 1, 2])]),
}


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def gradients(f: Callable[[Any], Any], x: NDArray) -> list[NDArray]:
    """Outside of jit and inside, of the function and of its jitted form."""
    ways = (hloom.grad(f), hloom.jit(hloom.grad(f)), hloom.grad(hloom.jit(f)))
    with hloom.enable_x64(True):
        return [np.asarray(way(x)) for way in ways]


def check_by_differences(f: Callable[[Any], Any], x: NDArray, *, second: bool = True) -> None:
    directions = [RNG.standard_normal(x.shape).astype(x.dtype) for _ in range(3)]
    if x.dtype.kind == "c":
        directions = [d + 1j * RNG.standard_normal(x.shape) for d in directions]
    step = 1e-5
    for found in gradients(f, x):
        with hloom.enable_x64(True):
            for d in directions:
                slope = (float(f(x + step * d)) - float(f(x - step * d))) / (2 * step)
                np.testing.assert_allclose(np.sum(found * d).real, slope, rtol=1e-6, atol=1e-7)
    with hloom.enable_x64(True):
        d, gradient = directions[0], hloom.grad(f)
        tangent = hloom.jvp(f, (x,), (d,))[1]
        np.testing.assert_allclose(float(tangent), np.sum(np.asarray(gradient(x)) * d).real, rtol=1e-9, atol=1e-9)
        if second:
            moved = np.asarray(hloom.jvp(gradient, (x,), (d,))[1])
            slope = (np.asarray(gradient(x + step * d)) - np.asarray(gradient(x - step * d))) / (2 * step)
            np.testing.assert_allclose(moved, slope, rtol=1e-4, atol=1e-6)


# ---- functions of values

OF_SINGULAR_VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[NDArray], NDArray]]] = {
    "svd, squares": (lambda x: (jnp.linalg.svd(x, full_matrices=False)[1] ** 2).sum(), lambda s: 2 * s),
    "svdvals, cubes": (lambda x: (jnp.linalg.svdvals(x) ** 3).sum(), lambda s: 3 * s * s),
    "svd, norm": (
        lambda x: jnp.linalg.norm(jnp.linalg.svd(x, full_matrices=False).S, axis=-1).sum(),
        lambda s: s / np.linalg.norm(s, axis=-1, keepdims=True),
    ),
    "nuclear norm": (lambda x: jnp.linalg.norm(x, "nuc", axis=(-2, -1)).sum(), np.ones_like),
}


@pytest.mark.parametrize("function", OF_SINGULAR_VALUES)
@pytest.mark.parametrize("name", FULL_RANK)
def test_singular_values(name: str, function: str) -> None:
    x = FULL_RANK[name]
    f, derivative = OF_SINGULAR_VALUES[function]
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    expected = np.conj((u * derivative(s)[..., None, :]) @ vh)
    for found in gradients(f, x):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", FULL_RANK)
def test_largest_singular_value(name: str) -> None:
    """A subgradient, since which of the largest ones are equal depends on rounding. Those that are share it."""
    x = FULL_RANK[name]
    for found in gradients(lambda x: jnp.linalg.norm(x, 2, axis=(-2, -1)).sum(), x):
        slope = (found * x).sum((-2, -1)).real
        np.testing.assert_allclose(slope, np.linalg.norm(x, 2, axis=(-2, -1)), rtol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(found, "nuc", axis=(-2, -1)), 1, rtol=1e-12)
    if name == "identity":
        np.testing.assert_allclose(found, x / 3, atol=1e-15)


@pytest.mark.parametrize("name", LOW_RANK)
def test_squares_of_singular_values_of_low_rank(name: str) -> None:
    x = LOW_RANK[name]
    for found in gradients(OF_SINGULAR_VALUES["svd, squares"][0], x):
        np.testing.assert_allclose(found, 2 * np.conj(x), atol=1e-12)


@pytest.mark.parametrize("name", HERMITIAN)
def test_eigenvalues(name: str) -> None:
    x = HERMITIAN[name]
    w, v = np.linalg.eigh(x)
    expected = np.conj((v * np.exp(w)[..., None, :]) @ adjoint(v))
    for values in (jnp.linalg.eigvalsh, lambda x: jnp.linalg.eigh(x)[0]):
        for found in gradients(lambda x, values=values: jnp.exp(values(x)).sum(), x):
            np.testing.assert_allclose(found, expected, atol=1e-12)


# ---- functions of vectors and values that have derivatives of their own

FACTORS: dict[str, Callable[[Any], Any]] = {
    "U": lambda x: linalg.polar(x)[0],
    "P": lambda x: linalg.polar(x)[1],
    "U, left": lambda x: linalg.polar(x, side="left")[0],
    "P, left": lambda x: linalg.polar(x, side="left")[1],
}


def weighted(f: Callable[[Any], Any], x: NDArray) -> Callable[[Any], Any]:
    """A real number that every element of the result contributes to."""

    def number(x: Any) -> Any:
        y = f(x)
        weights = jnp.cos(jnp.arange(y.size, dtype=y.real.dtype)).reshape(y.shape)
        return (weights * y).real.sum() + (y * weights[..., ::-1]).imag.sum() + (abs(y) ** 4).sum()

    return number


@pytest.mark.one_in(3)
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", FULL_RANK)
def test_polar_factors(name: str, factor: str) -> None:
    x, f = FULL_RANK[name], FACTORS[factor]
    check_by_differences(weighted(hloom.vmap(f) if x.ndim == 3 else f, x), x)


@pytest.mark.parametrize("factor", FACTORS)
def test_values_of_polar_factors(factor: str) -> None:
    for x in FULL_RANK.values():
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        base = u if "left" in factor else adjoint(vh)
        expected = u @ vh if factor[0] == "U" else (base * s[..., None, :]) @ adjoint(base)
        with hloom.enable_x64(True):
            np.testing.assert_allclose(np.asarray(FACTORS[factor](x)), expected, atol=1e-13)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FULL_RANK)
def test_least_squares(name: str) -> None:
    x = FULL_RANK[name]
    b = np.cos(np.arange(2.0 * x.shape[-2])).reshape(-1, 2).astype(x.dtype)

    def of_matrix(x: Any) -> Any:
        return jnp.linalg.lstsq(x, b)[0]

    check_by_differences(weighted(hloom.vmap(of_matrix) if x.ndim == 3 else of_matrix, x), x)
    if x.ndim == 2:
        check_by_differences(weighted(lambda b: jnp.linalg.lstsq(x, b)[0], b), b)
        check_by_differences(lambda x: jnp.linalg.lstsq(x, b[:, 0])[1].sum() + abs(x * x).sum(), x)


@pytest.mark.parametrize("name", LOW_RANK)
def test_least_squares_of_low_rank_are_those_of_pinv(name: str) -> None:
    x = LOW_RANK[name]
    b = np.cos(np.arange(2.0 * x.shape[-2])).reshape(-1, 2).astype(x.dtype)
    f = weighted(lambda x: jnp.linalg.lstsq(x, b, 1e-8)[0], x)
    expected = gradients(weighted(lambda x: jnp.linalg.pinv(x, 1e-8) @ b, x), x)[0]
    for found in gradients(f, x):
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("angles", [[[0.3]], [[0.3], [0.3]], [[0.3], [0.9]], [[0.1], [0.5], [0.7]]])
def test_means_of_few_rotations(angles: list[list[float]]) -> None:
    """They turn about one axis, by the mean of the angles where that is defined by two of them."""

    def f(x: Any) -> Any:
        return (Rotation.from_rotvec(x).mean().as_matrix() * np.arange(9.0).reshape(3, 3)).sum()

    check_by_differences(f, np.array([[0, 0, *a] for a in angles]) + 0.0)
    check_by_differences(f, np.array([[0.1 * a[0], 0.2, a[0]] for a in angles]))


# ---- the vectors themselves

NOT_DETERMINED: dict[str, Callable[[Any], Any]] = {
    "an eigenvector": lambda x: jnp.linalg.eigh(x)[1][0, 0],
    "another element": lambda x: jnp.linalg.eigh(x)[1][0, 1],
    "fourth powers": lambda x: (jnp.linalg.eigh(x)[1] ** 4).sum(),
    "a singular vector": lambda x: jnp.linalg.svd(x)[0][0, 1],
    # The cotangents of s, u and v^H, or of w and v, are the same for s and s * s, or for log w and 0, at the identity:
    # no rule for the factors can tell the gradients of these functions apart.
    "a product": lambda x: ((f := jnp.linalg.svd(x)).U * f.S @ f.Vh)[0, 1],
    "a product with squares": lambda x: ((f := jnp.linalg.svd(x)).U * f.S**2 @ f.Vh)[0, 1],
    "a logarithm": lambda x: ((f := jnp.linalg.eigh(x))[1] * jnp.log(f[0]) @ f[1].T)[0, 1],
}


@pytest.mark.parametrize("function", NOT_DETERMINED)
def test_gradients_that_are_not_determined_are_not_finite(function: str) -> None:
    for x in (np.eye(3), np.diag([2.0, 2, 1])):
        for found in gradients(NOT_DETERMINED[function], x):
            assert not np.isfinite(found).all()

"""Functions that read one triangle of a matrix: elements of the other one, NaN included, change neither their
values nor the derivatives by the triangle that is read, and has the derivative 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
import hloom.scipy.linalg as sl
from hloom.lax import linalg as ll
from support.batch_check import check_batches
from support.grad_check import check_derivatives

pytestmark = pytest.mark.usefixtures("evaluator")
"""The rules are tested here, not the code of the operations in them: test_ops.py has that."""

NDArray = np.ndarray[Any, Any]
Function = Callable[..., Any]
RNG = np.random.default_rng(3)
N = 4
_Z = RNG.standard_normal((N, N)) + 1j * RNG.standard_normal((N, N))
HERMITIAN = _Z @ _Z.conj().T + N * np.eye(N)
SYMMETRIC = _Z.real + _Z.real.T + 3 * np.eye(N)
COMPLEX_SYMMETRIC = _Z + _Z.T + 5j * np.eye(N)
B = RNG.standard_normal((N, 2))
B_LEFT = B @ B.T + N * np.eye(N)

# name: (function of (matrix, lower), matrix, whether its other triangle follows from the triangle that is read)
CASES: dict[str, tuple[Callable[[Any, bool], Any], NDArray, bool]] = {
    "scipy cholesky": (lambda a, low: sl.cholesky(a, lower=low), HERMITIAN, True),
    "scipy cho_factor, cho_solve": (lambda a, low: sl.cho_solve(sl.cho_factor(a, lower=low), B), HERMITIAN, True),
    "scipy cho_solve": (lambda a, low: sl.cho_solve((a, low), B), HERMITIAN, False),
    "scipy solve pos": (lambda a, low: sl.solve(a, B, assume_a="pos", lower=low), HERMITIAN, True),
    "scipy solve her": (lambda a, low: sl.solve(a, B, assume_a="her", lower=low), HERMITIAN, True),
    "scipy solve sym": (lambda a, low: sl.solve(a, B, assume_a="sym", lower=low), SYMMETRIC, True),
    "scipy solve sym, complex": (lambda a, low: sl.solve(a, B, assume_a="sym", lower=low), COMPLEX_SYMMETRIC, True),
    "scipy eigh": (lambda a, low: sl.eigh(a, lower=low, eigvals_only=True), HERMITIAN, True),
    "scipy eigh with vectors": (lambda a, low: abs(sl.eigh(a, lower=low)[1]), HERMITIAN, True),
    "scipy eigh of a and b": (lambda a, low: sl.eigh(a, _given(B_LEFT, low, 9.0), low, True), HERMITIAN, True),
    "scipy eigh of b and a": (lambda a, low: sl.eigh(_given(B_LEFT, low, 9.0), a, low, True, type=2), HERMITIAN, True),
    "scipy solve_triangular": (lambda a, low: sl.solve_triangular(a, B, lower=low, trans="C"), HERMITIAN, False),
    "scipy solve_triangular, unit": (
        lambda a, low: sl.solve_triangular(a, B, lower=low, unit_diagonal=True),
        HERMITIAN,
        False,
    ),
    "lax eigh": (lambda a, low: ll.eigh(a, lower=low, symmetrize_input=False)[1], HERMITIAN, True),
    "lax triangular_solve": (
        lambda a, low: ll.triangular_solve(a, B.T.astype(a.dtype), lower=low, transpose_a=True),
        HERMITIAN,
        False,
    ),
    "lax tridiagonal": (lambda a, low: ll.tridiagonal(a, lower=low)[1:3], HERMITIAN, True),
    "numpy eigh": (lambda a, low: jnp.linalg.eigh(a, "UL"[low], symmetrize_input=False)[0], HERMITIAN, True),
    "numpy eigvalsh": (lambda a, low: jnp.linalg.eigvalsh(a, "UL"[low], symmetrize_input=False), HERMITIAN, True),
    "numpy cholesky": (
        lambda a, low: jnp.linalg.cholesky(a, upper=not low, symmetrize_input=False),
        HERMITIAN,
        True,
    ),
    "lax cholesky_update": (lambda a, low: ll.cholesky_update(a if not low else a.T, B[:, 0]), HERMITIAN.real, False),
}
ALL = [(name, lower) for name in CASES for lower in (False, True)]


def _given(x: NDArray, lower: bool, other: Any) -> NDArray:
    is_read = np.tril(np.ones((N, N), bool)) if lower else np.triu(np.ones((N, N), bool))
    return np.where(is_read, x, other)


@pytest.mark.parametrize("name, lower", ALL)
def test_the_other_triangle_is_not_read(name: str, lower: bool) -> None:
    function, whole, follows = CASES[name]
    for x in {whole.dtype: whole, whole.real.dtype: whole.real}.values():
        clean = x if follows else _given(x, lower, 0)
        with hloom.enable_x64(True):
            expected = hloom.tree.leaves(function(jnp.array(clean), lower))
            for call in (function, hloom.jit(function, static_argnums=1)):
                for other in (np.nan, 7.0):
                    found = hloom.tree.leaves(call(jnp.array(_given(x, lower, other)), lower))
                    for got, want in zip(found, expected, strict=True):
                        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-10)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name, lower", [(n, low) for n, low in ALL if n != "lax tridiagonal"])
def test_derivatives_are_those_of_one_triangle(name: str, lower: bool) -> None:
    """Finite differences of all elements: they are 0 in the other triangle."""
    function, whole, _ = CASES[name]

    def leaves(xs: list[Any]) -> list[Any]:
        return hloom.tree.leaves(function(xs[0], lower))

    with hloom.enable_x64(True):
        check_derivatives(leaves, [_given(whole.real, lower, 0.25)], tolerance=1e-5)


@pytest.mark.parametrize("name", ["scipy solve her", "scipy solve sym, complex", "scipy eigh"])
def test_batches(name: str) -> None:
    function, whole, _ = CASES[name]
    with hloom.enable_x64(True):
        check_batches(lambda a: function(a, True), [whole])

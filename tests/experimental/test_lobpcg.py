"""`hloom.experimental.sparse.linalg.lobpcg_standard` against `numpy.linalg.eigh`: matrices, functions, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.experimental import sparse
from hloom.experimental.sparse.linalg import lobpcg_standard

N, K = 60, 4
RNG = np.random.default_rng(0)
START = RNG.standard_normal((N, K))


def _with_values(values: Any, imaginary: bool = False) -> np.ndarray[Any, Any]:
    """A matrix with these eigenvalues, in a basis other than the coordinates."""
    basis = np.linalg.qr(RNG.standard_normal((N, N)) + (1j * RNG.standard_normal((N, N)) if imaginary else 0))[0]
    return (basis * values) @ basis.conj().T


MATRICES = {
    "the identity": np.eye(N),
    "values from 1 to N": _with_values(np.arange(1.0, N + 1)),
    "values of many sizes": _with_values(np.logspace(0, 5, N)),
    "all values negative": _with_values(-np.arange(1.0, N + 1)),
    "equal values, fewer than asked for": np.diag([1000.0] * (K - 1) + [1.0] * (N - K + 1)),
    "equal values, half of those asked for": np.diag([1000.0] * (K // 2) + [1.0] * (N - K // 2)),
    "complex": _with_values(np.arange(1.0, N + 1), imaginary=True),
    "zeros": np.zeros((N, N)),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("wide", [False, True], ids=["32", "64"])
@pytest.mark.parametrize("name", MATRICES)
def test_as_eigh(name: str, wide: bool) -> None:
    matrix = MATRICES[name]
    dtype = {"f": np.float32, "c": np.complex64}[matrix.dtype.kind]
    with hloom.enable_x64(wide):
        dtype = np.result_type(dtype, np.float64) if wide else dtype
        values, vectors, steps = lobpcg_standard(matrix.astype(dtype), START.astype(dtype), 150)
        assert values.dtype == np.zeros(0, dtype).real.dtype and vectors.dtype == dtype and steps.dtype.kind == "i"
    wanted = np.linalg.eigvalsh(matrix)[::-1]
    size = max(abs(wanted).max(), 1)
    tolerance = 1e-8 if wide else 2e-3
    found, u = np.asarray(values, float), np.asarray(vectors, complex)
    np.testing.assert_allclose(found, wanted[:K], rtol=tolerance, atol=tolerance * size)
    np.testing.assert_allclose(u.conj().T @ u, np.eye(K), atol=tolerance)
    np.testing.assert_allclose(matrix @ u, u * found, atol=tolerance * size)
    assert steps < 150 or name in ("values of many sizes", "zeros")  # nothing is smaller than 10 n tol * 0


ACTIONS = {
    "a function": lambda x: jnp.arange(1.0, N + 1)[:, None] * x,
    "neighbours on a ring": lambda x: 2 * x - jnp.roll(x, 1, axis=0) - jnp.roll(x, -1, axis=0),
    "a sparse matrix": lambda x: sparse.BCOO.fromdense(jnp.diag(jnp.arange(1.0, N + 1)), nse=N) @ x,
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ACTIONS)
def test_of_a_function(name: str) -> None:
    action = ACTIONS[name]
    wanted = np.linalg.eigvalsh(np.asarray(action(jnp.eye(N))))[::-1]
    search = hloom.jit(lambda x: lobpcg_standard(action, x, 60))
    for found in (lobpcg_standard(action, START, 60), search(START)):
        np.testing.assert_allclose(np.asarray(found[0]), wanted[:K], rtol=1e-3)


def test_a_tolerance_ends_the_search() -> None:
    matrix = MATRICES["values from 1 to N"].astype(np.float32)
    steps = [int(lobpcg_standard(matrix, START, 50, tol)[2]) for tol in (1e-3, 1e-5, None, 0.0)]
    assert steps == sorted(steps) and steps[0] < steps[2] and steps[3] == 50


@pytest.mark.parametrize(
    ("a", "x", "why"),
    [
        (np.eye(N), START[:, :0], "search dim > 0, got 0"),
        (np.eye(15), START[:15], r"search dim \* 5 < matrix dim \(got 20, 15\)"),
        (np.eye(N)[:40], START, r"A must be \(60, 60\) matrix A, got output \(40, 1\)"),
        (lambda x: x.astype(np.float16), START, r"same dtypes \(were float16, float32\)"),
        (np.eye(N), START[:, 0], r"X must be \[n, k\], got float32\[60\]"),
        (np.eye(N), np.ones((N, 2), int), r"X must hold floats, got int32\[60,2\]"),
    ],
)
def test_refused(a: Any, x: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        lobpcg_standard(a, x)

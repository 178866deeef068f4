"""`hloom.experimental.sparse.linalg.spsolve` against dense solves: values, derivatives, batches, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import hloom
import hloom.numpy as jnp
from hloom.experimental import sparse
from hloom.experimental.sparse.linalg import spsolve
from support.grad_check import check_derivatives

RNG = np.random.default_rng(0)
N = 7
DENSE = np.where(RNG.random((N, N)) < 0.4, RNG.standard_normal((N, N)), 0) + 3 * np.eye(N)
CSR = scipy.sparse.csr_matrix(DENSE)
DATA, INDICES, INDPTR = CSR.data, CSR.indices, CSR.indptr
B = RNG.standard_normal(N)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_as_a_dense_solve(dtype: str) -> None:
    with hloom.enable_x64(True):
        data, b = DATA.astype(dtype), B.astype(dtype)
        if dtype.startswith("c"):
            data, b = data * (1 + 0.5j), b * 1j
        matrix = scipy.sparse.csr_matrix((data, INDICES, INDPTR)).toarray()
        for call in (spsolve, hloom.jit(spsolve)):
            found = call(data, INDICES, INDPTR, b)
            assert found.dtype == dtype
            np.testing.assert_allclose(
                np.asarray(found), np.linalg.solve(matrix, b), rtol=1e-4 if dtype in ("float32", "complex64") else 1e-10
            )
    m = sparse.BCSR.fromdense(jnp.array(DENSE))
    found = spsolve(m.data, m.indices, m.indptr, jnp.array(B))
    np.testing.assert_allclose(np.asarray(found), np.linalg.solve(DENSE, B), rtol=1e-4)


@pytest.mark.parametrize("parts", ["both", "data", "b"])
def test_derivatives(parts: str) -> None:
    def f(xs: list[Any]) -> list[Any]:
        given = dict(zip(("data", "b") if parts == "both" else (parts,), xs, strict=True))
        return [spsolve(given.get("data", jnp.array(DATA)), INDICES, INDPTR, given.get("b", jnp.array(B)))]

    with hloom.enable_x64(True):
        check_derivatives(f, {"both": [DATA, B], "data": [DATA], "b": [B]}[parts], tolerance=1e-5)


def test_second_derivatives_are_those_of_a_dense_solve() -> None:
    def dense(data: Any) -> Any:
        rows = np.repeat(np.arange(N), np.diff(INDPTR))
        return jnp.linalg.solve(jnp.zeros((N, N)).at[rows, INDICES].set(data), B).sum()

    with hloom.enable_x64(True):
        found = hloom.hessian(lambda data: spsolve(data, INDICES, INDPTR, jnp.array(B)).sum())(jnp.array(DATA))
        np.testing.assert_allclose(np.asarray(found), np.asarray(hloom.hessian(dense)(jnp.array(DATA))), atol=1e-10)


def test_batches() -> None:
    with hloom.enable_x64(True):
        rights = RNG.standard_normal((3, N))
        found = hloom.vmap(spsolve, (None, None, None, 0))(DATA, INDICES, INDPTR, rights)
        np.testing.assert_allclose(np.asarray(found), np.linalg.solve(DENSE, rights.T).T, rtol=1e-10)


def test_singular_matrices_and_none() -> None:
    zero = np.zeros(2, np.float32)
    assert np.isnan(np.asarray(spsolve(zero, np.array([0, 1]), np.array([0, 1, 2]), zero + 1))).all()
    nothing = np.zeros(0, np.float32)
    assert spsolve(nothing, np.zeros(0, int), np.zeros(1, int), nothing).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((DATA, INDICES, INDPTR, B.astype(int)), "one dtype"),
        ((DATA, DATA, INDPTR, B), "must be integers"),
        ((DATA, INDICES, INDPTR, B[:, None]), "one dimension"),
        ((DATA, INDICES, INDPTR[:-1], B), "square matrix"),
        ((DATA, INDICES, INDPTR, B, 1e-6, 5), "reorder must be 0, 1, 2 or 3"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with hloom.enable_x64(True), pytest.raises(ValueError, match=message):
        spsolve(*arguments)

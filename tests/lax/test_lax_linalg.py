"""Factorisations and solvers of `hloom.lax.linalg`: what their factors multiply to, derivatives against finite
differences to second order, edge sizes, failures, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hloom
import hloom.numpy as jnp
from hloom.lax import linalg
from support.batch_check import check_batches, complex_ones_slow
from support.grad_check import check_derivatives

NDArray = np.ndarray[Any, Any]


def matrix(*shape: int, kind: str = "f8", seed: int = 0) -> NDArray:
    """Random numbers, near a multiple of the identity."""
    rng = np.random.default_rng((seed, *shape))
    x = rng.standard_normal(shape)
    if kind == "c16":
        x = x + 1j * rng.standard_normal(shape)
    return x


def definite(*shape: int, kind: str = "f8", seed: int = 0) -> NDArray:
    x = matrix(*shape, kind=kind, seed=seed)
    return x @ adjoint(x) + shape[-1] * np.eye(shape[-1])


def adjoint(x: NDArray) -> NDArray:
    return x.conj().swapaxes(-1, -2)


def diagonal_matrix(values: NDArray) -> NDArray:
    return values[..., None] * np.eye(values.shape[-1])


KINDS = ("f8", "c16")
SQUARE = ((3, 3), (2, 4, 4), (1, 1), (2, 3, 2, 2), (0, 0), (0, 3, 3), (40, 40))
ANY = (*SQUARE, (4, 2), (2, 5), (2, 3, 2), (0, 3), (3, 0), (1, 4), (40, 33))


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-10)


def run(function: Callable[..., Any], *args: Any) -> list[NDArray]:
    """The results as NumPy arrays, the same with and without jit."""
    with hloom.enable_x64(True):
        plain, compiled = function(*args), hloom.jit(function)(*args)
    plain, compiled = (list(r) if isinstance(r, tuple | list) else [r] for r in (plain, compiled))
    for a, b in zip(plain, compiled, strict=True):
        close(a, np.asarray(b))
    return [np.asarray(r) for r in plain]


# ---- what they compute


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_cholesky(shape: tuple[int, ...], kind: str) -> None:
    a = definite(*shape, kind=kind)
    (factor,) = run(linalg.cholesky, a)
    close(factor @ adjoint(factor), a)
    close(factor, np.tril(factor))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ANY, ids=str)
def test_lu(shape: tuple[int, ...], kind: str) -> None:
    a = matrix(*shape, kind=kind)
    factors, pivots, order = run(linalg.lu, a)
    k = min(shape[-2:])
    lower = np.tril(factors[..., :k], -1) + np.eye(shape[-2], k)
    close(lower @ np.triu(factors[..., :k, :]), np.take_along_axis(a, order[..., None], -2))
    assert pivots.dtype == order.dtype == np.int32
    assert pivots.shape == (*shape[:-2], k)
    (again,) = run(lambda p: linalg.lu_pivots_to_permutation(p, shape[-2]), pivots)
    np.testing.assert_array_equal(again, order)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ANY, ids=str)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("pivoting", [True, False])
def test_qr(shape: tuple[int, ...], kind: str, full: bool, pivoting: bool) -> None:
    a = matrix(*shape, kind=kind)
    q, r, *order = run(lambda x: linalg.qr(x, full_matrices=full, pivoting=pivoting), a)
    m, n = shape[-2:]
    width = m if full else min(m, n)
    assert q.shape == (*shape[:-2], m, width) and r.shape == (*shape[:-2], width, n)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(width), (*shape[:-2], width, width)))
    close(r, np.triu(r))
    close(q @ r, np.take_along_axis(a, order[0][..., None, :], -1) if order else a)
    if order:
        pivots = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (np.diff(pivots) <= 1e-10).all() and order[0].dtype == np.int32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigh(shape: tuple[int, ...], kind: str) -> None:
    a = definite(*shape, kind=kind)
    v, w = run(linalg.eigh, a)
    close(w, np.linalg.eigvalsh(a))
    close(v @ diagonal_matrix(w) @ adjoint(v), a)
    upper = np.triu(a) + np.tril(np.full(shape, np.nan), -1)
    close(run(lambda x: linalg.eigh(x, lower=False, symmetrize_input=False), upper)[1], w)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eig(shape: tuple[int, ...], kind: str) -> None:
    a = matrix(*shape, kind=kind)
    w, u, v = run(linalg.eig, a)
    close(a @ v, v @ diagonal_matrix(w))
    close(adjoint(u) @ a, diagonal_matrix(w) @ adjoint(u))
    (values,) = run(lambda x: linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False), a)
    close(np.sort_complex(values.round(9)), np.sort_complex(w.round(9)))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ANY, ids=str)
@pytest.mark.parametrize("full", [True, False])
def test_svd(shape: tuple[int, ...], kind: str, full: bool) -> None:
    a = matrix(*shape, kind=kind)
    k = min(shape[-2:])
    for algorithm in (None, linalg.SvdAlgorithm.QR):
        u, s, vt = run(lambda x, how=algorithm: linalg.svd(x, full_matrices=full, algorithm=how), a)
        close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a)
        for factor in (u, adjoint(vt)):
            width = factor.shape[-1]
            close(adjoint(factor) @ factor, np.broadcast_to(np.eye(width), (*shape[:-2], width, width)))
            assert width == (factor.shape[-2] if full else k)
        (values,) = run(lambda x: linalg.svd(x, compute_uv=False), a)
        close(values, s)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_forms(shape: tuple[int, ...], kind: str) -> None:
    a = matrix(*shape, kind=kind)
    n = shape[-1]
    t, z = run(linalg.schur, a)
    close(z @ t @ adjoint(z), a)
    close(t, np.triu(t, -1 if kind == "f8" else 0))
    close(run(lambda x: linalg.schur(x, compute_schur_vectors=False), a)[0], t)
    h, taus = run(linalg.hessenberg, a)
    assert taus.shape == (*shape[:-2], max(n, 1) - 1)
    if n:
        q = np.zeros_like(a)
        q[..., 0, 0] = 1
        q[..., 1:, 1:] = run(linalg.householder_product, h[..., 1:, :-1], taus)[0]
        close(q @ np.triu(h, -1) @ adjoint(q), a)
    for lower in (True, False):
        hermitian = a + adjoint(a)
        _, d, e, _ = run(lambda x, low=lower: linalg.tridiagonal(x, lower=low), hermitian)
        form = diagonal_matrix(d)
        k = np.arange(n - 1)
        form[..., k, k + 1] = form[..., k + 1, k] = e
        close(np.linalg.eigvalsh(form), np.linalg.eigvalsh(hermitian))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_ormqr(kind: str, left: bool, transpose: bool) -> None:
    a = matrix(2, 4, 3, kind=kind)
    reflections, taus = np.zeros_like(a), np.zeros((2, 3), a.dtype)
    for i in range(2):
        (reflections[i], taus[i]), _ = scipy.linalg.qr(a[i], mode="raw")
    q = np.linalg.qr(a, "complete")[0]
    q = adjoint(q) if transpose else q
    c = matrix(2, 4, 4, kind=kind, seed=1)
    found = run(lambda *args: linalg.ormqr(*args, left=left, transpose=transpose), reflections, taus, c)
    close(found[0], q @ c if left else c @ q)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (1,), (0,), (2, 2, 40)], ids=str)
@pytest.mark.parametrize("perturb", [False, True])
def test_tridiagonal_solve(shape: tuple[int, ...], kind: str, perturb: bool) -> None:
    dl, d, du = (matrix(*shape, kind=kind, seed=s) for s in range(3))
    d = d + 4
    b = matrix(*shape, 2, kind=kind)
    n = shape[-1]
    t = diagonal_matrix(d)
    k = np.arange(n - 1)
    t[..., k + 1, k], t[..., k, k + 1] = dl[..., 1:], du[..., :-1]
    (x,) = run(lambda *args: linalg.tridiagonal_solve(*args, perturb_singular=perturb), dl, d, du, b)
    close(t @ x, b)


def test_triangular_solve_of_vectors() -> None:
    a, b = definite(2, 3, 3), matrix(2, 3)
    (left,) = run(lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True), a, b)
    close(np.tril(a) @ left[..., None], b[..., None])
    (right,) = run(lambda a, b: linalg.triangular_solve(a, b), a, b)
    close(right[:, None, :] @ np.triu(a), b[:, None, :])
    for transpose in (False, True):
        z = definite(3, 3, kind="c16")
        options = {"left_side": True, "transpose_a": transpose, "conjugate_a": True}
        (found,) = run(lambda a, b, o=options: linalg.triangular_solve(a, b, **o), z, z)
        op = np.triu(z).conj()
        close((op.T if transpose else op) @ found, z)


def test_products() -> None:
    r, w = np.triu(definite(4, 4)), matrix(4)
    (found,) = run(linalg.cholesky_update, r, w)
    close(found.T @ found, r.T @ r + np.outer(w, w))
    a, c = matrix(2, 3, 4), definite(2, 3, 3)
    for symmetrize in (True, False):
        (found,) = run(
            lambda a, c, s=symmetrize: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=s), a, c
        )
        close(found, 2 * a @ a.swapaxes(-1, -2) + 0.5 * c)


# ---- derivatives


def _phase_free(vectors: Any) -> Any:
    """The projections on the columns: what does not depend on their phases."""
    return vectors[..., :, None, :] * vectors[..., None, :, :].conj()


def _svd(x: Any, **options: Any) -> list[Any]:
    """u and v^H with the phases of each pair removed."""
    u, s, vt = linalg.svd(x, **options)
    pairs = u[..., :, None, :] * vt.swapaxes(-1, -2)[..., None, :, :]
    return [s, pairs]


Case = tuple[Callable[..., Any], list[NDArray]]


def _derivatives() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for kind in KINDS:
        for shape in ((3, 3), (2, 2, 2), (1, 1)):
            label = f"{kind} {shape}"
            a, b = matrix(*shape, kind=kind), definite(*shape, kind=kind)
            cases[f"cholesky {label}"] = (linalg.cholesky, [b])
            cases[f"cholesky lower {label}"] = (lambda x: linalg.cholesky(x, symmetrize_input=False), [b])
            cases[f"eigh {label}"] = (lambda x: [linalg.eigh(x)[1], _phase_free(linalg.eigh(x)[0])], [b])
            cases[f"eigvals {label}"] = (
                lambda x: linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False),
                [a],
            )
            cases[f"eig {label}"] = (lambda x: linalg.eig(x, enable_eigvec_derivs=True), [a])
            cases[f"triangular_solve {label}"] = (
                lambda x, y: linalg.triangular_solve(x, y, transpose_a=True, conjugate_a=True),
                [b, a],
            )
        for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1)):
            label = f"{kind} {shape}"
            a = matrix(*shape, kind=kind)
            cases[f"lu {label}"] = (lambda x: linalg.lu(x)[:1], [a])
            cases[f"qr {label}"] = (lambda x: linalg.qr(x, full_matrices=False), [a])
            cases[f"qr pivoting {label}"] = (lambda x: linalg.qr(x, full_matrices=False, pivoting=True)[:2], [a])
            cases[f"svd {label}"] = (lambda x: _svd(x, full_matrices=False), [a])
            cases[f"svd values {label}"] = (lambda x: linalg.svd(x, compute_uv=False), [a])
        cases[f"qr full {kind}"] = (linalg.qr, [matrix(2, 4, 2, kind=kind)])
        diagonals = [matrix(2, 4, kind=kind, seed=s) + 4 * (s == 1) for s in range(3)]
        cases[f"tridiagonal_solve {kind}"] = (linalg.tridiagonal_solve, [*diagonals, matrix(2, 4, 3, kind=kind)])
    cases["cholesky_update"] = (linalg.cholesky_update, [np.triu(definite(3, 3)), matrix(3)])
    cases["symmetric_product"] = (linalg.symmetric_product, [matrix(3, 4), definite(3, 3)])
    return cases


DERIVATIVES = _derivatives()
BATCHED = [name for name in DERIVATIVES if "(" not in name or "(3, 3)" in name or "(2, 4)" in name]


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", complex_ones_slow(DERIVATIVES))
def test_derivatives(name: str) -> None:
    function, inputs = DERIVATIVES[name]

    def flat(xs: list[Any]) -> list[Any]:
        found = function(*xs)
        return list(found) if isinstance(found, tuple | list) else [found]

    with hloom.enable_x64(True):
        check_derivatives(flat, inputs, tolerance=1e-5, step=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", complex_ones_slow(BATCHED))
def test_batches(name: str) -> None:
    function, inputs = DERIVATIVES[name]
    with hloom.enable_x64(True):
        check_batches(function, inputs)


def test_batches_of_derivatives_and_derivatives_of_batches() -> None:
    a, b = matrix(3, 4, 4), matrix(3, 4, 2)

    def loss(x: Any, y: Any) -> Any:
        _, logarithm = jnp.linalg.slogdet(x)
        q, r = linalg.qr(x)
        return (jnp.linalg.solve(x, y) ** 2).sum() + logarithm + (q @ r**2).sum() + linalg.eigh(x)[0][0, 0] ** 2

    gradient = hloom.grad(loss, (0, 1))
    with hloom.enable_x64(True):
        expected = [np.stack(parts) for parts in zip(*[gradient(x, y) for x, y in zip(a, b)])]
        inside = hloom.vmap(gradient)(a, b)
        outside = hloom.grad(lambda x, y: hloom.vmap(loss)(x, y).sum(), (0, 1))(a, b)
        again = hloom.vmap(hloom.vmap(gradient))(a[None], b[None])
        for k, wanted in enumerate(expected):
            for found in (inside[k], outside[k], again[k][0]):
                np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-7, atol=1e-9)


def test_derivatives_of_one_operand_touch_no_other() -> None:
    """A constant matrix is not multiplied by a tangent of zeros."""
    a, b = jnp.eye(3) * 2, jnp.ones((3, 1))
    text = str(hloom.make_hlo(lambda b: hloom.jvp(lambda y: jnp.linalg.solve(a, y), (b,), (b,))[1])(b))
    assert " dot(" not in text


GAUGES: list[Callable[[Any, Any], Any]] = [
    lambda m, a: m.qr(a),
    lambda m, a: m.qr(a, pivoting=True)[:2],
    lambda m, a: m.svd(a, full_matrices=False),
    lambda m, a: m.svd(a.T, full_matrices=False),
    lambda m, a: m.eigh(a[:2] + a[:2].conj().T),
]


def test_jax_agrees_on_gauges() -> None:
    """Vectors that are determined up to a phase, or not at all, move as JAX moves them."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True), hloom.enable_x64(True):
        for kind in KINDS:
            x, t = matrix(4, 2, kind=kind), matrix(4, 2, kind=kind, seed=1)
            for call in GAUGES:
                expected = jax.jvp(partial(call, jax.lax.linalg), (x,), (t,))
                found = hloom.jvp(partial(call, linalg), (x,), (t,))
                for a, b in zip(hloom.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                    close(a, np.asarray(b))


# ---- failures


def test_what_cannot_be_factored_is_nan() -> None:
    two = np.stack([np.eye(2), -np.eye(2)]).astype(np.float32)
    factor = np.asarray(linalg.cholesky(two))
    np.testing.assert_array_equal(factor[0], np.eye(2))
    np.testing.assert_array_equal(factor[1], [[np.nan, 0], [np.nan, np.nan]])
    bad = np.full((2, 2), np.nan, np.float32)
    for found in (*linalg.eig(bad), *linalg.svd(bad), *linalg.eigh(bad)):
        assert np.isnan(np.asarray(found)).all()
    factors, _, order = linalg.lu(np.zeros((3, 3), np.float32))  # singular: no failure
    assert not np.asarray(factors).any() and sorted(np.asarray(order).tolist()) == [0, 1, 2]
    d = np.zeros(3, np.float32)
    assert np.isnan(np.asarray(linalg.tridiagonal_solve(d, d, d, np.ones((3, 1), np.float32)))).all()


_X, _F16 = np.ones((3, 2), np.float32), np.ones((2, 2), np.float16)
_S = np.eye(3, dtype=np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "not square": (lambda: linalg.cholesky(_X), ValueError, r"cholesky: .*the last two dimensions must be equal"),
    "eigh not square": (lambda: linalg.eigh(_X), TypeError, "must be equal"),
    "a vector": (lambda: linalg.lu(_X[0]), ValueError, "at least 2 dimensions"),
    "float16": (lambda: linalg.qr(_F16), NotImplementedError, r"astype\('float32'\)"),
    "pivots": (lambda: linalg.lu_pivots_to_permutation(np.ones(3, np.float32), 4), TypeError, "array of int32"),
    "size": (lambda: linalg.lu_pivots_to_permutation(np.ones(3, np.int32), 2), ValueError, "permutation size 2"),
    "sorted schur": (lambda: linalg.schur(_S, sort_eig_vals=True), NotImplementedError, "cannot be sorted"),
    "subset": (lambda: linalg.eigh(_S, subset_by_index=(0, 1)), NotImplementedError, "subset_by_index"),
    "svd subset": (lambda: linalg.svd(_S, subset_by_index=(0, 2)), ValueError, "cannot both be set"),
    "svd part": (
        lambda: linalg.svd(_S, full_matrices=False, subset_by_index=(0, 2)),
        NotImplementedError,
        "subset_by_index",
    ),
    "jacobi": (lambda: linalg.svd(_S, algorithm=linalg.SvdAlgorithm.JACOBI), NotImplementedError, "not for CPUs"),
    "qdwh": (
        lambda: linalg.eigh(_S, implementation=linalg.EighImplementation.QDWH),
        NotImplementedError,
        "not for CPUs",
    ),
    "cusolver": (lambda: linalg.eig(_S, implementation=linalg.EigImplementation.CUSOLVER), ValueError, "LAPACK"),
    "reflections": (lambda: linalg.householder_product(_X.T, _X[0]), ValueError, "at least as many rows"),
    "taus": (lambda: linalg.householder_product(_X, np.ones(3, np.float32)), ValueError, "second argument"),
    "ormqr": (lambda: linalg.ormqr(_S, np.ones(3, np.float32), np.ones((4, 3), np.float32)), ValueError, "rows"),
    "tridiagonal b": (lambda: linalg.tridiagonal_solve(_X[0], _X[0], _X[0], _X[0]), TypeError, "rank at least 2"),
    "diagonals": (lambda: linalg.tridiagonal_solve(_X[0], _S[0], _S[0], _S), TypeError, "same shape"),
    "solve dtypes": (lambda: linalg.triangular_solve(_S, _S.astype(np.complex64)), TypeError, "one dtype"),
    "solve sizes": (lambda: linalg.triangular_solve(_S, _X), ValueError, "b must have as many columns as a"),
    "jvp of eig": (lambda: hloom.jvp(linalg.eig, (_S,), (_S,)), NotImplementedError, "enable_eigvec_derivs"),
    "jvp of full svd": (lambda: hloom.jvp(linalg.svd, (_X,), (_X,)), NotImplementedError, "full_matrices=False"),
    "jvp of schur": (lambda: hloom.jvp(linalg.schur, (_S,), (_S,)), NotImplementedError, "schur has no derivative"),
    "jvp of hessenberg": (lambda: hloom.jvp(linalg.hessenberg, (_S,), (_S,)), NotImplementedError, "no derivative"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("shape", [pytest.param((5, 5), marks=pytest.mark.slow), (8, 3)])
@pytest.mark.parametrize("kind", ["real", pytest.param("complex", marks=pytest.mark.slow)])
def test_qdwh(shape: tuple[int, int], kind: str) -> None:
    """u h = x, u has orthonormal columns, h is Hermitian and positive; also of a part of an array."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind == "complex" else 0)
    with hloom.enable_x64(True):
        u, h, steps, converged = (np.asarray(r) for r in hloom.jit(linalg.qdwh)(x))
        m, n = shape
        padded = np.pad(x, (0, 2), constant_values=3)
        part = hloom.jit(lambda y, m, n: linalg.qdwh(y, dynamic_shape=(m, n)))(padded, m, n)
        slow = linalg.qdwh(x, max_iterations=2)
    np.testing.assert_allclose(u @ h, x, atol=1e-12)
    np.testing.assert_allclose(u.conj().T @ u, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(h, h.conj().T, atol=1e-14)
    assert np.linalg.eigvalsh(h).min() > 0 and converged and steps <= 7
    np.testing.assert_allclose(np.asarray(part[0])[:m, :n], u, atol=1e-12)
    assert not np.asarray(part[0])[m:].any() and not bool(slow[3]) and int(slow[2]) == 2
    with pytest.raises(ValueError, match="must have M >= N"):
        linalg.qdwh(x.T if m > n else x[:3])

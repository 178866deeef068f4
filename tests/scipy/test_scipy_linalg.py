"""`hloom.scipy.linalg` against SciPy, its derivatives against finite differences, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hloom
import hloom.numpy as jnp
import hloom.scipy.linalg as linalg
from support.batch_check import check_batches, complex_ones_slow
from support.grad_check import check_derivatives

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
A, B, TALL, V = RNG.standard_normal((4, 4)), RNG.standard_normal((4, 2)), RNG.standard_normal((4, 3)), np.arange(4.0)
Z = A + 1j * RNG.standard_normal((4, 4))
H, HZ = A @ A.T + 4 * np.eye(4), Z @ Z.conj().T + 4 * np.eye(4)
P = A + A.T + 20 * np.eye(4)

CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "cholesky": (lambda m, x, y: (m.cholesky(x), m.cholesky(y, lower=True)), [H, HZ]),
    "cho_solve": (lambda m, x, y: (m.cho_solve(m.cho_factor(x), y), m.cho_solve(m.cho_factor(x, True), y)), [HZ, Z]),
    "solve_triangular": (
        lambda m, x, y: [
            m.solve_triangular(x, y, trans=t, lower=low, unit_diagonal=u)
            for t in (0, 1, 2, "N", "T", "C")
            for low in (True, False)
            for u in (True, False)
        ],
        [HZ, Z],
    ),
    "solve_triangular of a vector": (lambda m, x, y: m.solve_triangular(x, y), [H, V]),
    "solve": (lambda m, x, y: [m.solve(x, y, assume_a=a) for a in ("gen", "sym", "her", "pos")], [H, B]),
    "solve lower": (lambda m, x, y: m.solve(x, y, lower=True, assume_a="pos"), [HZ, V]),
    "inv": (lambda m, x: (m.inv(x), m.det(x)), [Z]),
    "lu": (lambda m, x: (*m.lu(x), *m.lu(x, permute_l=True)), [Z]),
    "lu tall": (lambda m, x: (*m.lu(x), *m.lu(x.T)), [TALL]),
    "lu_factor": (lambda m, x: m.lu_factor(x), [Z]),
    "lu_solve": (lambda m, x, y: [m.lu_solve(m.lu_factor(x), y, trans=t) for t in (0, 1, 2)], [Z, B]),
    "qr": (lambda m, x: (*m.qr(x), *m.qr(x, mode="economic"), *m.qr(x, mode="r")), [TALL]),
    "qr pivoting": (lambda m, x: (*m.qr(x, pivoting=True), *m.qr(x, mode="r", pivoting=True)), [TALL]),
    "qr_multiply": (lambda m, x, y: m.qr_multiply(x, y), [TALL, A]),
    "qr_multiply left": (lambda m, x, y: m.qr_multiply(x, y, "left"), [TALL, A[:3]]),
    "qr_multiply vector": (lambda m, x, y: m.qr_multiply(x, y, conjugate=True), [Z, V]),
    "svd": (lambda m, x: [m.svd(x, compute_uv=False, lapack_driver=d) for d in ("gesdd", "gesvd")], [TALL]),
    "eigh": (lambda m, x: (m.eigh(x)[0], m.eigh(x, eigvals_only=True)), [HZ]),
    "eigh generalized": (lambda m, x, y: [m.eigh(x, y, type=t, eigvals_only=True) for t in (1, 2, 3)], [A + A.T, H]),
    "schur": (lambda m, x: m.schur(x), [A]),
    "hessenberg": (lambda m, x: (m.hessenberg(x), *m.hessenberg(x, calc_q=True)), [Z]),
    "expm": (lambda m, x, y: (m.expm(x), m.expm(y), m.expm(x * 30)), [A, Z]),
    "expm of a batch": (lambda m, x: m.expm(x), [np.stack([A, 0 * A, A * 100, A / 100])]),
    "expm_frechet": (lambda m, x, y: m.expm_frechet(x, y), [A, H]),
    "sqrtm": (lambda m, x, y: (m.sqrtm(x), m.sqrtm(y)), [A, Z]),
    "funm": (lambda m, x: m.funm(x, lambda w: w**2 + 1), [A]),
    "polar": (lambda m, x: (*m.polar(x), *m.polar(x, side="left"), *m.polar(x.T)), [TALL]),
    "solve_sylvester": (lambda m, x, y, z: m.solve_sylvester(x, y, z), [A, H[:2, :2], B]),
    "block_diag": (lambda m, x, y: (m.block_diag(x, y, 2.0, y[0]), m.block_diag()), [A, B]),
    "toeplitz": (lambda m, x, y: (m.toeplitz(x), m.toeplitz(x, y), m.toeplitz(y, x), m.toeplitz(x[:1])), [Z[0], V[:3]]),
    "hankel": (lambda m, x, y: (m.hankel(x), m.hankel(x, y), m.hankel(y, x)), [V, V[:3] + 1]),
    "hilbert": (lambda m, x: m.hilbert(3), [V]),
    "invhilbert": (lambda m, x: [m.invhilbert(n) for n in (1, 4)], [V]),
    "circulant": (lambda m, x: (m.circulant(x), m.circulant(x[:1])), [Z[0]]),
    "companion": (lambda m, x: (m.companion(x), m.companion(x[:2])), [Z[0]]),
    "convolution_matrix": (
        lambda m, x: [m.convolution_matrix(x, n, k) for n in (1, 3, 6) for k in ("full", "same", "valid")],
        [Z[0]],
    ),
    "dft": (lambda m, x: [m.dft(n, k) for n in (1, 5) for k in (None, "n", "sqrtn")], [V]),
    "fiedler": (lambda m, x: m.fiedler(x), [V]),
    "fiedler_companion": (lambda m, x: [m.fiedler_companion(x[:n]) for n in (2, 3, 5, 6, 9)], [np.arange(1.0, 10)]),
    "hadamard": (lambda m, x: [m.hadamard(n, np.float32) for n in (1, 2, 8)], [V]),
    "helmert": (lambda m, x: [m.helmert(n, f) for n in (1, 4) for f in (True, False)], [V]),
    "leslie": (lambda m, x, y: m.leslie(x, y), [V, V[1:]]),
    "pascal": (
        lambda m, x: [f(n, k) for f in (m.pascal, m.invpascal) for n in (1, 5) for k in ("symmetric", "lower")],
        [V],
    ),
    "pascal upper": (lambda m, x: (m.pascal(4, "upper"), m.invpascal(4, "upper")), [V]),
    "eigh_tridiagonal": (
        lambda m, x, y: (
            m.eigh_tridiagonal(x, y, eigvals_only=True),
            m.eigh_tridiagonal(x, y, eigvals_only=True, select="i", select_range=(1, 2)),
            abs(m.eigh_tridiagonal(x, y)[1]),
        ),
        [V, V[1:]],
    ),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CASES)
def test_as_in_scipy(name: str) -> None:
    function, inputs = CASES[name]
    expected = function(scipy.linalg, *inputs)
    with hloom.enable_x64(True):
        found = function(linalg, *inputs)
        compiled = hloom.jit(lambda *xs: function(linalg, *xs))(*inputs)
        for leaves in (hloom.tree.leaves(found), hloom.tree.leaves(compiled)):
            for a, b in zip(leaves, hloom.tree.leaves(expected), strict=True):
                assert a.shape == np.shape(b)
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-9)


def test_generalized_eigenvectors() -> None:
    x = A + A.T
    with hloom.enable_x64(True):
        for kind, check in {
            1: lambda w, v: (x @ v, H @ v * w),
            2: lambda w, v: (x @ H @ v, v * w),
            3: lambda w, v: (H @ x @ v, v * w),
        }.items():
            w, v = linalg.eigh(x, H, type=kind)
            left, right = check(np.asarray(w), np.asarray(v))
            np.testing.assert_allclose(left, right, atol=1e-9)
            metric = np.linalg.inv(H) if kind == 3 else H
            np.testing.assert_allclose(np.asarray(v.T @ metric @ v), np.eye(4), atol=1e-9)


def test_complex_schur_and_the_eigen_method() -> None:
    with hloom.enable_x64(True):
        for form in (linalg.schur(A, output="complex"), linalg.rsf2csf(*linalg.schur(A))):
            t, z = (np.asarray(r) for r in form)
            np.testing.assert_allclose(z @ t @ z.conj().T, A, atol=1e-12)
            np.testing.assert_allclose(z @ z.conj().T, np.eye(4), atol=1e-12)
            np.testing.assert_allclose(t, np.triu(t), atol=1e-14)
        x = np.asarray(linalg.solve_sylvester(A, H[:2, :2], B, method="eigen"))
        np.testing.assert_allclose(A @ x + x @ H[:2, :2], B, atol=1e-10)
        result, error = linalg.funm(A, jnp.exp, disp=False)
        np.testing.assert_allclose(np.asarray(result), scipy.linalg.expm(A), atol=1e-9)
        assert 0 < float(error) <= 1


def test_expm_of_a_triangular_matrix_and_of_large_ones() -> None:
    upper = np.triu(A).astype(np.float32)
    found = linalg.expm(upper, upper_triangular=True)
    np.testing.assert_allclose(np.asarray(found), scipy.linalg.expm(upper), rtol=1e-4)
    assert np.isnan(np.asarray(linalg.expm(upper * 1e9))).all()
    assert np.isnan(np.asarray(linalg.expm(np.full((2, 2), np.nan, np.float32)))).all()
    assert linalg.expm(np.zeros((2, 2), int)).dtype == "float32"
    assert linalg.expm(np.zeros((0, 0), np.float32)).shape == (0, 0)


DERIVATIVES: dict[str, tuple[Callable[..., Any], list[NDArray]]] = {
    "cholesky": (linalg.cholesky, [H]),
    "cho_solve": (lambda x, y: linalg.cho_solve(linalg.cho_factor(x), y), [H, B]),
    "solve pos": (lambda x, y: linalg.solve(x, y, assume_a="pos"), [H, V]),
    "solve pos, matrices": (lambda x, y: linalg.solve(x, y, assume_a="pos"), [H, B]),
    "solve pos complex": (lambda x, y: linalg.solve(x, y, assume_a="pos"), [HZ, Z[:, :2]]),
    "lu_solve": (lambda x, y: linalg.lu_solve(linalg.lu_factor(x), y, trans=1), [A, B]),
    "lu": (lambda x: list(linalg.lu(x)[1:]), [A]),
    "expm": (linalg.expm, [A]),
    "expm complex": (linalg.expm, [Z[:2, :2]]),
    "polar": (lambda x: list(linalg.polar(x)), [TALL]),
    "eigh generalized": (lambda x, y: linalg.eigh(x, y, eigvals_only=True), [A + A.T, H]),
    "qr_multiply": (lambda x, y: list(linalg.qr_multiply(x, y)), [TALL, A]),
    "toeplitz": (linalg.toeplitz, [V, V + 1]),
    "block_diag": (linalg.block_diag, [A, B]),
    "circulant": (linalg.circulant, [V]),
    "companion": (linalg.companion, [V + 1]),
    "leslie": (linalg.leslie, [V, V[1:]]),
    "fiedler_companion": (linalg.fiedler_companion, [np.arange(1.0, 7)]),
    "eigh_tridiagonal": (lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), [V, V[1:]]),
}


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", complex_ones_slow(DERIVATIVES))
def test_derivatives(name: str) -> None:
    function, inputs = DERIVATIVES[name]

    def flat(xs: list[Any]) -> list[Any]:
        found = function(*xs)
        return found if isinstance(found, list) else [found]

    with hloom.enable_x64(True):
        check_derivatives(flat, inputs, tolerance=1e-5)


def test_derivatives_of_a_positive_system_keep_its_factor() -> None:
    """One factorisation, two triangular solves for x and two for the gradient: nothing else costs n^3."""

    def loss(a: Any, b: Any) -> Any:
        return linalg.solve(a, b, assume_a="pos").sum()

    text = hloom.jit(hloom.grad(loss, (0, 1))).lower(H, V).as_text()
    assert text.count(" cholesky(") == 1
    assert text.count(" triangular-solve(") == 2  # of one composite, which is called twice


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", DERIVATIVES)
def test_batches(name: str) -> None:
    function, inputs = DERIVATIVES[name]
    with hloom.enable_x64(True):
        check_batches(function, inputs)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", ["sqrtm", "solve_sylvester", "schur"])
def test_batches_without_derivatives(name: str) -> None:
    inputs = [A, H, A] if name == "solve_sylvester" else [A]
    with hloom.enable_x64(True):
        check_batches(getattr(linalg, name), inputs)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "trans": (lambda: linalg.solve_triangular(A, B, trans=5), ValueError, "Invalid 'trans' value 5"),
    "lu trans": (lambda: linalg.lu_solve(linalg.lu_factor(A), B, trans=4), ValueError, "must be 0, 1, or 2, got 4"),
    "assume_a": (lambda: linalg.solve(A, B, assume_a="x"), ValueError, "Expected assume_a to be one of"),
    "rows": (lambda: linalg.cho_solve((A, True), B[:3]), ValueError, "as many rows"),
    "mode": (lambda: linalg.qr(A, mode="x"), ValueError, "Unsupported QR decomposition mode 'x'"),
    "output": (lambda: linalg.schur(A, output="x"), ValueError, "either 'real' or 'complex'"),
    "type": (lambda: linalg.eigh(A, type=4), ValueError, "must be 1, 2, or 3"),
    "part": (lambda: linalg.eigh(A, eigvals=(0, 1)), NotImplementedError, "eigvals"),  # type: ignore[arg-type]
    "driver": (lambda: linalg.svd(A, lapack_driver="x"), ValueError, "lapack_driver"),
    "sylvester": (lambda: linalg.solve_sylvester(A, A, A, method="x"), ValueError, "Unrecognized method 'x'"),
    "sylvester shape": (lambda: linalg.solve_sylvester(A, A, B), ValueError, "columns of B"),
    "polar": (lambda: linalg.polar(A, method="x"), ValueError, "Unknown polar decomposition method 'x'"),
    "side": (lambda: linalg.polar(A, "x"), ValueError, "'right' or 'left'"),
    "blocks": (lambda: linalg.block_diag(np.ones((1, 1, 1))), ValueError, "at most 2 dimensions"),
    "blocksize": (lambda: linalg.sqrtm(A, 2), NotImplementedError, "block size of 2"),
    "square": (lambda: linalg.expm(TALL), ValueError, "must be equal"),
    "frechet": (lambda: linalg.expm_frechet(A, TALL), ValueError, "one shape"),
    "companion": (lambda: linalg.companion(V[:1]), ValueError, "must be at least 2"),
    "leslie": (lambda: linalg.leslie(V, V), ValueError, "Incorrect lengths for f and s"),
    "convolution_matrix": (lambda: linalg.convolution_matrix(V, 3, "x"), ValueError, "mode must be one of"),
    "convolution_matrix n": (lambda: linalg.convolution_matrix(V, 0), ValueError, "n must be a positive integer"),
    "dft": (lambda: linalg.dft(3, "x"), ValueError, "scale must be None, 'sqrtn', or 'n'"),
    "dft dtype": (lambda: linalg.dft(3, dtype=float), ValueError, "complex floating-point type"),
    "hadamard": (lambda: linalg.hadamard(3), ValueError, "positive power of 2"),
    "helmert": (lambda: linalg.helmert(0), ValueError, "positive integer"),
    "pascal": (lambda: linalg.pascal(3, "x"), ValueError, "Expected kind to be one of"),
    "tridiagonal": (lambda: linalg.eigh_tridiagonal(V, V), ValueError, "one number less"),
    "tridiagonal dtype": (lambda: linalg.eigh_tridiagonal(V, V[1:] * 1j), TypeError, "must have same dtype"),
    "tridiagonal values": (
        lambda: linalg.eigh_tridiagonal(V, V[1:], select="v", select_range=(0, 1)),
        NotImplementedError,
        "select='v'",
    ),
    "tridiagonal select": (lambda: linalg.eigh_tridiagonal(V, V[1:], select="i"), ValueError, "must be specified"),
    "qr_multiply": (lambda: linalg.qr_multiply(TALL, TALL), ValueError, "c must have 4 columns"),
    "derivative": (lambda: hloom.jvp(linalg.sqrtm, (A,), (A,)), NotImplementedError, "schur has no derivative"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with hloom.enable_x64(True), pytest.raises(kind, match=message):
        call()


def test_complex_tridiagonal_matrices() -> None:
    d, e = V + 0j, Z[0, 1:]
    with hloom.enable_x64(True):
        w, v = (np.asarray(r) for r in linalg.eigh_tridiagonal(d, e))
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    np.testing.assert_allclose(matrix @ v, v * w, atol=1e-12)


# ---- batches, and floats of 16 bits

RANDOM = np.random.default_rng(5)
BATCH_A, BATCH_B = RANDOM.standard_normal((2, 3, 4, 4)), RANDOM.standard_normal((3, 2, 2))
BATCH_C = RANDOM.standard_normal((2, 1, 4, 2))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvester_equations_of_batches(method: str) -> None:
    with hloom.enable_x64():
        solve = hloom.jit(lambda a, b, c: linalg.solve_sylvester(a, b, c, method=method))
        found = np.asarray(solve(BATCH_A, BATCH_B, BATCH_C))
    assert found.shape == (2, 3, 4, 2)
    np.testing.assert_allclose(BATCH_A @ found + found @ BATCH_B, np.broadcast_to(BATCH_C, found.shape), atol=1e-10)


def test_complex_schur_forms_of_batches() -> None:
    with hloom.enable_x64():
        t, z = map(np.asarray, linalg.rsf2csf(*linalg.schur(BATCH_A)))
    np.testing.assert_allclose(z @ t @ np.conj(np.swapaxes(z, -1, -2)), BATCH_A, atol=1e-10)
    np.testing.assert_allclose(np.tril(t, -1), 0, atol=1e-10)


def test_one_matrix_and_a_batch_of_complex_schur_forms() -> None:
    with hloom.enable_x64():
        real, vectors = linalg.schur(BATCH_A)
        t, z = linalg.rsf2csf(real, vectors[0])
        each = [linalg.rsf2csf(one, vectors[0]) for one in real]
    np.testing.assert_allclose(t, [form for form, _ in each], atol=1e-12)
    np.testing.assert_allclose(z, [turned for _, turned in each], atol=1e-12)


HALF = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32)
SIDE = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]], np.float32)
IN_SINGLE: dict[str, Any] = {
    "numpy.solve": lambda a, b: jnp.linalg.solve(a, b),
    "numpy.solve of a vector": lambda a, b: jnp.linalg.solve(a, b[:, 0]),
    "inv": lambda a, b: jnp.linalg.inv(a),
    "lu": lambda a, b: linalg.lu(a),
    "lu, permuted": lambda a, b: linalg.lu(a, permute_l=True),
    "lu_factor": lambda a, b: linalg.lu_factor(a),
    "lu_solve": lambda a, b: linalg.lu_solve((a, np.array([1, 1, 2])), b, trans=1),
    "solve": lambda a, b: linalg.solve(a, b),
    "solve pos": lambda a, b: linalg.solve(a, b, assume_a="pos"),
    "solve sym lower": lambda a, b: linalg.solve(a, b, assume_a="sym", lower=True),
    "solve_triangular": lambda a, b: linalg.solve_triangular(a, b, trans=1, lower=True),
    "triangular_solve": lambda a, b: hloom.lax.linalg.triangular_solve(a, b, left_side=True, unit_diagonal=True),
    "lax.lu": lambda a, b: hloom.lax.linalg.lu(a),
    "gradient": lambda a, b: hloom.grad(lambda a: jnp.linalg.solve(a, b).sum())(a),
    "batch": lambda a, b: hloom.vmap(jnp.linalg.solve)(jnp.stack([a, a + a]), jnp.stack([b, b])),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", IN_SINGLE)
def test_half_precision_is_computed_in_single(name: str, dtype: str) -> None:
    wide = hloom.tree.leaves(IN_SINGLE[name](jnp.array(HALF), jnp.array(SIDE)))
    for f in (IN_SINGLE[name], hloom.jit(IN_SINGLE[name])):
        found = hloom.tree.leaves(f(jnp.array(HALF, dtype), jnp.array(SIDE, dtype)))
        for half, single in zip(found, wide, strict=True):
            assert half.dtype == (dtype if single.dtype == "float32" else single.dtype)
            tolerance = 0 if name != "gradient" else float(jnp.finfo(dtype).eps) * 8
            np.testing.assert_allclose(half.astype("float32"), single.astype(half.dtype).astype("float32"), tolerance)


def test_square_roots_of_half_precision_are_complex64() -> None:
    assert linalg.sqrtm(jnp.array(HALF, "bfloat16")).dtype == "complex64"

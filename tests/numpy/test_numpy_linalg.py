"""`hloom.numpy.linalg`: against NumPy and, where it is installed, JAX; derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from support.batch_check import check_batches, complex_ones_slow
from support.grad_check import check_derivatives

NDArray = np.ndarray[Any, Any]


def matrix(*shape: int, kind: str = "f8", seed: int = 0) -> NDArray:
    rng = np.random.default_rng((seed, *shape))
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if kind == "c16" else x


def definite(*shape: int, kind: str = "f8") -> NDArray:
    x = matrix(*shape, kind=kind)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


KINDS = ("f8", "c16")
A, B, WIDE, TALL = matrix(3, 3), matrix(2, 4, 4), matrix(2, 2, 4), matrix(4, 3)
SINGULAR = np.outer(np.arange(4.0), np.arange(1.0, 5.0))
Case = tuple[Callable[..., Any], list[Any]]


def _cases() -> dict[str, Case]:
    """Functions of (the namespace, arrays), the same in NumPy."""
    cases: dict[str, Case] = {}
    for kind in KINDS:
        for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2), (2, 2)):
            a, h = matrix(*shape, kind=kind), definite(*shape, kind=kind)
            label = f"{kind} {shape}"
            for name in ("det", "inv"):
                cases[f"{name} {label}"] = (lambda m, x, n=name: getattr(m, n)(x), [a])
            cases[f"slogdet {label}"] = (lambda m, x: tuple(m.slogdet(x)), [a])
            cases[f"cholesky {label}"] = (lambda m, x: (m.cholesky(x), m.cholesky(x, upper=True)), [h])
            cases[f"eigvalsh {label}"] = (lambda m, x: (m.eigvalsh(x), m.eigvalsh(x, "U"), m.eigh(x)[0]), [h])
            if a.size:
                cases[f"matrix_power {label}"] = (lambda m, x: [m.matrix_power(x, n) for n in (-2, 0, 3)], [a])
                orders = (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc")
                cases[f"cond {label}"] = (lambda m, x, o=orders: [m.cond(x, p) for p in o], [a])
            b = matrix(shape[-1], kind=kind)
            cases[f"solve vector {label}"] = (lambda m, x, y: m.solve(x, y), [a, b])
            cases[f"solve {label}"] = (lambda m, x, y: m.solve(x, y), [a, matrix(shape[-1], 2, kind=kind)])
        for shape in ((3, 3), (2, 4, 3), (2, 4), (1, 3), (0, 3), (3, 0)):
            a = matrix(*shape, kind=kind)
            label = f"{kind} {shape}"
            cases[f"svdvals {label}"] = (lambda m, x: m.svd(x, compute_uv=False), [a])
            cases[f"matrix_rank {label}"] = (lambda m, x: m.matrix_rank(x), [a])
            if a.size:
                cases[f"pinv {label}"] = (lambda m, x: m.pinv(x), [a])
                orders = (2, -2, "nuc")
                cases[f"norm {label}"] = (lambda m, x, o=orders: [m.norm(x, p, (-2, -1)) for p in o], [a])
        cases[f"lstsq {kind}"] = (
            lambda m, x, y: tuple(m.lstsq(x, y, None)),
            [matrix(5, 3, kind=kind), matrix(5, 2, kind=kind)],
        )
        cases[f"tensorsolve {kind}"] = (
            lambda m, x, y: m.tensorsolve(x, y),
            [matrix(2, 3, 6, kind=kind), matrix(2, 3, kind=kind)],
        )
        cases[f"tensorsolve axes {kind}"] = (
            lambda m, x, y: m.tensorsolve(x, y, axes=(0,)),
            [matrix(6, 2, 3, kind=kind), matrix(2, 3, kind=kind)],
        )
        cases[f"tensorinv {kind}"] = (lambda m, x: m.tensorinv(x), [matrix(2, 3, 6, kind=kind)])
        chain = [matrix(*s, kind=kind) for s in ((4,), (4, 2), (2, 5), (5, 3))]
        cases[f"multi_dot {kind}"] = (lambda m, *xs: (m.multi_dot(xs), m.multi_dot(xs[1:])), chain)
    cases["solve batches"] = (lambda m, x, y: m.solve(x, y), [B[:, None], matrix(3, 4, 2)])
    cases["rank of a singular matrix"] = (lambda m, x: m.matrix_rank(x), [SINGULAR])
    cases["rank by a limit"] = (lambda m, x: (m.matrix_rank(x, tol=1.0), m.matrix_rank(x, rtol=0.5)), [B])
    cases["rank, Hermitian"] = (lambda m, x: m.matrix_rank(x, hermitian=True), [A + A.T])
    cases["rank of a vector"] = (lambda m, x: (m.matrix_rank(x), m.matrix_rank(0 * x)), [A[0]])
    cases["pinv, Hermitian"] = (lambda m, x: m.pinv(x, hermitian=True), [A + A.T])
    cases["pinv by a limit"] = (lambda m, x: (m.pinv(x, 0.5), m.pinv(x, rcond=0.5)), [B])
    cases["pinv singular"] = (lambda m, x: m.pinv(x, 1e-10), [SINGULAR])
    cases["svd, Hermitian"] = (lambda m, x: m.svd(x, compute_uv=False, hermitian=True), [B + B.mT])
    cases["cross"] = (lambda m, x, y: m.cross(x, y, axis=0), [A, A[::-1]])
    cases["norm keepdims"] = (lambda m, x: m.norm(x, "nuc", (2, 0), True), [B])
    cases["det of integers"] = (lambda m, x: m.det(x), [np.arange(16).reshape(4, 4) % 5])
    cases["lstsq vector"] = (lambda m, x, y: tuple(m.lstsq(x, y, 0.1)), [TALL, TALL[:, 0] + 1])
    return cases


CASES = _cases()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", complex_ones_slow(CASES))
def test_as_in_numpy(name: str) -> None:
    function, inputs = CASES[name]
    expected = function(np.linalg, *inputs)
    with hloom.enable_x64(True):
        for run in (function, lambda m, *xs: hloom.jit(lambda *ys: function(m, *ys))(*xs)):
            found = run(jnp.linalg, *inputs)
            for a, b in zip(hloom.tree.leaves(found), hloom.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-8, atol=1e-8)
                assert a.shape == np.shape(b)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 2, 4)], ids=str)
def test_factors(shape: tuple[int, ...], kind: str) -> None:
    a = matrix(*shape, kind=kind)
    with hloom.enable_x64(True):
        for mode in ("reduced", "complete"):
            q, r = jnp.linalg.qr(a, mode)
            expected = np.linalg.qr(a, mode)
            assert q.shape == expected[0].shape and r.shape == expected[1].shape
            np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-12)
        np.testing.assert_allclose(jnp.linalg.qr(a, "r"), np.linalg.qr(a, "r"), atol=1e-12)
        for found, known in zip(jnp.linalg.qr(a, "raw"), np.linalg.qr(a, "raw"), strict=True):
            np.testing.assert_allclose(np.asarray(found), known, atol=1e-12)
        result = jnp.linalg.svd(a, full_matrices=False)
        np.testing.assert_allclose(np.asarray((result.U * result.S[..., None, :]) @ result.Vh), a, atol=1e-12)
        square = a[..., :2, :2]
        w, v = jnp.linalg.eig(square)
        np.testing.assert_allclose(np.asarray(square @ v), np.asarray(v * w[..., None, :]), atol=1e-12)
        np.testing.assert_allclose(np.asarray(jnp.linalg.eigvals(square)), np.asarray(w), atol=1e-12)
        hermitian = square + square.conj().swapaxes(-1, -2)
        result = jnp.linalg.svd(hermitian, hermitian=True)
        np.testing.assert_allclose(np.asarray((result.U * result.S[..., None, :]) @ result.Vh), hermitian, atol=1e-12)
        assert (np.diff(result.S) <= 0).all()


def _derivatives() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    m = jnp.linalg
    for kind in KINDS:
        a, wide, h = (matrix(*s, kind=kind) for s in ((4, 4), (2, 2, 3), (2, 3, 3)))
        h = definite(*h.shape, kind=kind)
        one: dict[str, tuple[Callable[[Any], Any], NDArray]] = {
            "inv": (m.inv, a),
            "det": (m.det, a),
            "det 3": (m.det, a[:3, :3]),
            "det 2": (m.det, wide[..., :2]),
            "slogdet": (lambda x: list(m.slogdet(x)), a),
            "pinv": (m.pinv, wide),
            "pinv tall": (lambda x: m.pinv(x.mT), wide),
            "pinv, Hermitian": (lambda x: m.pinv(x, hermitian=True), h),
            "cholesky upper": (lambda x: m.cholesky(x, upper=True), h),
            "eigvalsh": (m.eigvalsh, h),
            "eigvalsh upper": (lambda x: m.eigvalsh(x, "U", symmetrize_input=False), h),
            "eigvals": (m.eigvals, a),
            "qr": (lambda x: list(m.qr(x.mT)), wide),
            "svdvals": (m.svdvals, wide),
            "norm 2": (lambda x: m.norm(x, 2, (-2, -1)), wide),
            "norm nuc": (lambda x: m.norm(x, "nuc", (-2, -1)), wide),
            "cond": (m.cond, a),
            "cond 1": (lambda x: m.cond(x, 1), a),
            "matrix_power": (lambda x: m.matrix_power(x, -2), a),
            "svd, Hermitian": (lambda x: m.svd(x, compute_uv=False, hermitian=True), h),
            "tensorinv": (lambda x: m.tensorinv(x.reshape(2, 2, 4)), a),
        }
        cases |= {f"{name} {kind}": (f, [x]) for name, (f, x) in one.items()}
        cases[f"solve {kind}"] = (m.solve, [h, wide.swapaxes(-1, -2)])
        cases[f"solve vector {kind}"] = (m.solve, [h, a[0, :3]])
        cases[f"lstsq {kind}"] = (lambda x, y: list(m.lstsq(x, y)[:2]), [wide[0].T, a[:3, :2]])
    cases["slogdet by qr"] = (lambda x: m.slogdet(x, method="qr")[1], [matrix(4, 4)])
    cases["det, the last pivot 0"] = (m.det, [np.array([[1, 2, 3, 4], [2, 1, 0, 1], [0, 1, 1, 3], [3, 4, 4, 8.0]])])
    return cases


DERIVATIVES = _derivatives()


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", complex_ones_slow(DERIVATIVES))
def test_derivatives(name: str) -> None:
    function, inputs = DERIVATIVES[name]

    def flat(xs: list[Any]) -> list[Any]:
        found = function(*xs)
        return list(found) if isinstance(found, tuple | list) else [found]

    with hloom.enable_x64(True):
        order = 1 if "pivot 0" in name else 2
        check_derivatives(flat, inputs, tolerance=1e-4, step=1e-6, order=order)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", [name for name in DERIVATIVES if "c16" not in name])
def test_batches(name: str) -> None:
    function, inputs = DERIVATIVES[name]
    with hloom.enable_x64(True):
        check_batches(function, inputs)


@pytest.mark.parametrize("shape", [(200_000, 2), (2, 200_000)])
def test_the_gradient_of_pinv_makes_no_large_square(shape: tuple[int, int]) -> None:
    x = matrix(*shape).astype(np.float32)
    found = np.asarray(hloom.grad(lambda x: (jnp.linalg.pinv(x) ** 2).sum())(x))
    tall = np.float64(x if shape[0] > 2 else x.T)
    expected = -2 * tall @ np.linalg.matrix_power(np.linalg.inv(tall.T @ tall), 2)  # |pinv x|^2 = tr (x^T x)^-1
    assert np.allclose(found, expected if shape[0] > 2 else expected.T, rtol=1e-4, atol=1e-10)


def test_solve_factors_its_matrix_once() -> None:
    """For the result and its gradient, and for a jacobian and a hessian too. Alone it keeps no factors."""

    def loss(a: Any, b: Any) -> Any:
        return (jnp.linalg.solve(a, b) ** 2).sum()

    a, b = np.eye(3, dtype=np.float32) * 2, np.ones(3, np.float32)
    for function in (loss, hloom.value_and_grad(loss, (0, 1)), hloom.hessian(loss)):
        text = hloom.jit(function).lower(a, b).compile().as_text()
        assert text.count('"LuDecomposition"') + text.count('"hloom.solve"') == 1
        assert text.count('"hloom.solve"') == (function is loss)
    large = np.eye(40, dtype=np.float32)
    assert hloom.jit(hloom.grad(loss)).lower(large, large[0]).compile().as_text().count("getrf") == 1


AGAINST_JAX = {
    "det of zeros": lambda m: m.det,
    "slogdet of zeros": lambda m: m.slogdet,
    "inverse of zeros": lambda m: m.inv,
    "svd of the identity": lambda m: lambda x: m.svd(x + np.eye(4, dtype=np.float32), full_matrices=False),
    "eigh of zeros": lambda m: m.eigh,
    "norm of zeros": lambda m: lambda x: m.norm(x),
    "cholesky of zeros": lambda m: m.cholesky,
}


@pytest.mark.parametrize("name", AGAINST_JAX)
def test_values_and_derivatives_at_singular_points_are_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    x, t = np.zeros((4, 4), np.float32), np.eye(4, dtype=np.float32) + np.ones((4, 4), np.float32)
    function = AGAINST_JAX[name]
    expected = jax.jvp(function(jax.numpy.linalg), (x,), (t,))
    found = hloom.jvp(function(jnp.linalg), (x,), (t,))
    for a, b in zip(hloom.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.isfinite(np.asarray(a)), np.isfinite(np.asarray(b)))
        np.testing.assert_allclose(np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0), atol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "bfloat16", "float32", "complex64"])
def test_types(dtype: str) -> None:
    x = jnp.eye(4, dtype=dtype)
    narrow = dtype in ("float16", "bfloat16")
    wanted = dtype if narrow or dtype == "complex64" else "float32"
    assert jnp.linalg.det(x).dtype == wanted and float(jnp.abs(jnp.linalg.det(x))) == 1
    assert jnp.linalg.slogdet(x).sign.dtype == wanted
    assert jnp.linalg.inv(x).dtype == wanted
    if narrow:
        with pytest.raises(NotImplementedError, match="astype"):
            jnp.linalg.svdvals(x)
    else:
        real = "float32"
        assert jnp.linalg.svdvals(x).dtype == jnp.linalg.eigh(x).eigenvalues.dtype == real
        assert jnp.linalg.eigvals(x).dtype == "complex64"


def test_lstsq_as_numpy_counts_residuals() -> None:
    for a in (TALL, TALL.T, np.outer(np.ones(4), np.ones(3))):
        b = np.ones(len(a))
        expected = np.linalg.lstsq(a, b)
        found = jnp.linalg.lstsq(a.astype(np.float32), b.astype(np.float32), numpy_resid=True)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-4, atol=1e-5)
    x, residuals, rank, s = jnp.linalg.lstsq(jnp.ones((0, 3)), jnp.ones((0,)))
    assert (x.tolist(), residuals.tolist(), int(rank), s.tolist()) == ([0, 0, 0], [0], 0, [])


S32 = np.eye(3, dtype=np.float32)
X32 = np.ones((4, 3), np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "det": (lambda: jnp.linalg.det(X32), ValueError, r"Argument to det must have shape \[..., n, n\]"),
    "inv of a vector": (lambda: jnp.linalg.inv(X32[0]), ValueError, "Argument to inv"),
    "slogdet": (lambda: jnp.linalg.slogdet(S32, method="x"), ValueError, "Unknown slogdet method 'x'"),
    "slogdet qr": (lambda: jnp.linalg.slogdet(S32 + 1j, method="qr"), NotImplementedError, "real matrices"),
    "solve": (lambda: jnp.linalg.solve(S32, np.ones(2)), ValueError, "b must have 3 rows"),
    "solve vectors": (lambda: jnp.linalg.solve(S32, X32), ValueError, r"solve\(a, b\[..., None\]\)"),
    "solve scalar": (lambda: jnp.linalg.solve(S32, 1.0), ValueError, "at least one dimension"),
    "a list": (lambda: jnp.linalg.inv([[1.0]]), TypeError, "requires ndarray"),  # type: ignore[arg-type]
    "cholesky": (lambda: jnp.linalg.cholesky(X32), TypeError, "must have shape"),
    "uplo": (lambda: jnp.linalg.eigh(S32, "x"), ValueError, "UPLO must be one of None, 'L', or 'U', got 'x'"),
    "mode": (lambda: jnp.linalg.qr(S32, "x"), ValueError, "Unsupported QR decomposition mode 'x'"),
    "two limits": (lambda: jnp.linalg.pinv(S32, 0.1, rcond=0.1), ValueError, "only one of rtol and rcond"),
    "limits of a batch": (lambda: jnp.linalg.pinv(jnp.ones((2, 4, 4)), jnp.ones(3)), ValueError, r"pinv: .*\(3,\)"),
    "16 bits": (lambda: jnp.linalg.qr(jnp.ones((3, 3), jnp.float16)), TypeError, "does not accept dtype float16"),
    "two rank limits": (lambda: jnp.linalg.matrix_rank(S32, 0.1, tol=0.1), ValueError, "only one of tol or rtol"),
    "cond": (lambda: jnp.linalg.cond(X32, 1), ValueError, "array must be square"),
    "cond order": (lambda: jnp.linalg.cond(S32, 5), ValueError, "Invalid order 5"),
    "cond empty": (lambda: jnp.linalg.cond(X32[:0]), ValueError, "must not be empty"),
    "norm": (lambda: jnp.linalg.norm(S32, "x"), ValueError, "Invalid order 'x' for matrix norm"),
    "one matrix": (lambda: jnp.linalg.multi_dot([S32]), ValueError, "at least two arrays"),
    "chain": (lambda: jnp.linalg.multi_dot([X32, X32]), ValueError, "must match first dimension"),
    "chain rank": (lambda: jnp.linalg.multi_dot([S32[None], S32]), ValueError, "two-dimensional"),
    "ind": (lambda: jnp.linalg.tensorinv(X32, 0), ValueError, "ind must be a positive integer"),
    "tensorinv": (lambda: jnp.linalg.tensorinv(X32, 1), ValueError, "must equal that of the others"),
    "tensorsolve": (lambda: jnp.linalg.tensorsolve(S32, X32), ValueError, "must match shape of b"),
    "cross": (lambda: jnp.linalg.cross(X32.T, X32.T), ValueError, "3 elements along axis -1"),
    "power": (lambda: jnp.linalg.matrix_power(S32, 2.0), TypeError, "must be an integer"),  # type: ignore[arg-type]
    "lstsq rows": (lambda: jnp.linalg.lstsq(X32, np.ones(3)), ValueError, "must match"),
    "lstsq b": (lambda: jnp.linalg.lstsq(X32, X32[..., None]), TypeError, "two-dimensional"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()

"""Programs ahead of time that in this process call libraries: Fourier transforms, linear algebra, custom calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.ahead.compiling import standalone
from hloom.numba_backend.ahead.llvm_program import program_object
from hloom.numba_backend.ahead.standalone import StandaloneProgram
from hloom.numba_backend.ahead.targets import TargetMachine
from hloom.numba_backend.emit.fourier import convolution_length, factors_of
from hloom.numba_backend.runtime.llvm_backend import load_objects

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax

NDArray = np.ndarray[Any, Any]
KIND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def run_program(program: StandaloneProgram, inputs: Sequence[NDArray]) -> list[NDArray]:
    """The results of the object code. Every byte that it is given is known before."""
    code = program_object(program, "op", TargetMachine("native", "native").resolved())
    kept, (address,) = load_objects([("op_run", code)])
    given = [np.ascontiguousarray(x) for x in inputs]
    results = [np.full(s.dimensions, 0, s.element.dtype) for s in program.results]
    memory = np.full(program.temporary_bytes + 64, 0xAA, np.uint8)
    start = memory.ctypes.data + (-memory.ctypes.data) % 64
    tables = [(ctypes.c_void_p * max(1, len(g)))(*[a.ctypes.data for a in g]) for g in (given, results)]
    assert KIND(address)(*tables, ctypes.c_void_p(start), None) == 0
    del kept
    return results


def compiled(function: Callable[..., Any], *args: Any) -> list[NDArray]:
    """The result of a function that is compiled ahead of time."""
    program = standalone(hloom.jit(function).lower(*args).module)
    return run_program(program, [np.asarray(jnp.asarray(a)) for a in args])


# Fourier transforms

_TYPES = {"f32": ("c64", np.float32, np.complex64), "f64": ("c128", np.float64, np.complex128)}
ULPS = 12
"""The largest error of an element, in units of the last place of the result's root mean square."""


def transform(kind: str, real: str, shape: tuple[int, ...], lengths: tuple[int, ...]) -> str:
    """A module with one fft. `shape`: of the side that is not cut in half."""
    half = [*shape[:-1], shape[-1] // 2 + 1]
    whole, cut = (",".join(map(str, s)) for s in (shape, half))
    complex_ = _TYPES[real][0]
    source, target = {
        "FFT": (f"{complex_}[{whole}]", f"{complex_}[{whole}]"), "IFFT": (f"{complex_}[{whole}]",) * 2,
        "RFFT": (f"{real}[{whole}]", f"{complex_}[{cut}]"), "IRFFT": (f"{complex_}[{cut}]", f"{real}[{whole}]"),
    }[kind]  # fmt: skip
    length = ",".join(map(str, lengths))
    return (
        f"HloModule m\nENTRY e {{\n  x = {source} parameter(0)\n"
        f"  ROOT r = {target} fft(x), fft_type={kind}, fft_length={{{length}}}\n}}\n"
    )


def reference(kind: str, x: NDArray, lengths: tuple[int, ...]) -> NDArray:
    """The same by NumPy, in twice the precision where it has that."""
    wide = x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    found: NDArray = getattr(np.fft, f"{kind.lower()}n")(wide, s=lengths, axes=axes)
    return found


def check_transform(kind: str, real: str, shape: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    module = hlo.parse(transform(kind, real, shape, lengths))
    (parameter,) = module.entry.parameters
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(parameter.shape.dimensions) + 1j * rng.standard_normal(parameter.shape.dimensions)
    given = (x if parameter.shape.element.is_complex else x.real).astype(parameter.shape.element.dtype)
    (found,) = run_program(standalone(module), [given])
    expected = reference(kind, given, lengths)
    assert found.shape == expected.shape
    unit = np.sqrt((np.abs(expected) ** 2).mean()) * np.finfo(_TYPES[real][1]).eps
    assert np.abs(found - expected).max() <= ULPS * unit


LENGTHS = [("f32", n) for n in (1, 2, 3, 4, 6, 15, 17, 64)] + [("f64", n) for n in (5, 30)]
MORE_LENGTHS = [("f32", n) for n in (34, 143, 1009)] + [("f64", n) for n in (38, 4096)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("real", "n"), [*LENGTHS, *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE_LENGTHS)]
)
def test_transforms_of_all_kinds_and_lengths(real: str, n: int) -> None:
    for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
        check_transform(kind, real, (3, n), (n,))


@pytest.mark.parametrize("kind", ["FFT", "RFFT", "IRFFT"])
def test_transforms_along_several_dimensions(kind: str) -> None:
    check_transform(kind, "f32", (2, 3, 4), (3, 4))
    check_transform(kind, "f64", (2, 3, 5), (2, 3, 5))


@pytest.mark.slow
def test_transforms_along_long_dimensions() -> None:
    for kind in ("IFFT", "IRFFT"):
        check_transform(kind, "f32", (4, 17, 3), (17, 3))
        check_transform(kind, "f32", (5, 24, 20), (24, 20))


def test_a_long_transform_is_for_several_threads() -> None:
    module = hlo.parse(transform("FFT", "f32", (20, 2048), (2048,)))
    (row,) = standalone(module).rows
    assert row.extent > 2 * row.grain > 0  # type: ignore[union-attr]
    check_transform("FFT", "f32", (20, 2048), (2048,))


def test_lengths_of_passes() -> None:
    for n in range(1, 400):
        factors = factors_of(n)
        assert factors is None or (np.prod(factors, dtype=int) == n and max(factors, default=1) <= 13)
        length = convolution_length(n)
        assert length >= 2 * n - 1
        found = factors_of(length)
        assert found is not None and max(found, default=1) <= 5
    assert convolution_length(1009) == 2025


# Linear algebra

EPS = {np.float32: 2.0**-23, np.float64: 2.0**-52, np.complex64: 2.0**-23, np.complex128: 2.0**-52}


def adjoint(x: NDArray) -> NDArray:
    swapped: NDArray = np.conj(np.swapaxes(x, -1, -2))
    return swapped


def matrix(dtype: Any, *shape: int) -> NDArray:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    return x.astype(dtype)


def close(found: NDArray, expected: NDArray, dtype: Any, units: float = 200) -> None:
    """Equal within so many epsilons of the largest element."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=units * EPS[dtype] * np.abs(expected).max(initial=1e-30))


def orthonormal(q: NDArray, dtype: Any) -> None:
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2)), dtype)


def check_cholesky(dtype: Any, n: int) -> None:
    a = matrix(dtype, 2, n, n)
    s = a @ adjoint(a) + n * np.eye(n, dtype=dtype)
    s[1, 0, 0] = -1

    def both(x: Any) -> Any:
        factor, other = (lax.linalg.cholesky(y, symmetrize_input=False) for y in (x, adjoint_of(x)))
        return factor, adjoint_of(other)

    lower, upper = compiled(both, s)
    close(lower[0] @ adjoint(lower[0]), s[0], dtype)
    close(adjoint(upper[0]) @ upper[0], s[0], dtype)
    assert np.isnan(lower[1]).any() and not np.triu(lower[0], 1).any()


def adjoint_of(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def check_triangular_solve(dtype: Any, n: int) -> None:
    a = matrix(dtype, 2, n, n) / n + np.eye(n, dtype=dtype)
    b = matrix(dtype, 2, n, 3)
    hows = [(left, lower, trans, unit) for left in (True, False) for lower in (True, False)
            for trans in "NTC" for unit in (True, False)]  # fmt: skip

    def solve(x: Any, y: Any) -> Any:
        return [
            lax.linalg.triangular_solve(
                x, y if left else jnp.swapaxes(y, -1, -2), left_side=left, lower=lower, transpose_a=trans != "N",
                conjugate_a=trans == "C", unit_diagonal=unit,
            )
            for left, lower, trans, unit in hows
        ]  # fmt: skip

    for (left, lower, trans, unit), x in zip(hows, compiled(solve, a, b), strict=True):
        t = np.tril(a) if lower else np.triu(a)
        if unit:
            t = t - np.einsum("bii->bi", t)[..., None] * np.eye(n) + np.eye(n)
        op = {"N": t, "T": np.swapaxes(t, -1, -2), "C": adjoint(t)}[trans]
        close(op @ x if left else np.swapaxes(x @ op, -1, -2), b, dtype, 2000)


def check_lu(dtype: Any, n: int) -> None:
    for shape in ((n, n), (n + 3, n), (n, n + 3)):
        a, k = matrix(dtype, 2, *shape), min(shape)
        lu, pivots, order = compiled(lambda x: tuple(lax.linalg.lu(x)), a)
        lower, upper = np.tril(lu[..., :k], -1) + np.eye(shape[0], k), np.triu(lu[..., :k, :])
        close(lower @ upper, np.take_along_axis(a, order[..., None].astype(int), -2), dtype)
        assert pivots.shape == (2, k)


def check_qr(dtype: Any, n: int) -> None:
    for shape in ((n + 3, n), (n, n + 3)):
        a = matrix(dtype, *shape)

        def all_(x: Any) -> Any:
            q, r, p = hloom.scipy.linalg.qr(x, pivoting=True)
            raw, taus = jnp.linalg.qr(x, mode="raw")
            raw = jnp.swapaxes(raw, -1, -2)
            times = [
                lax.linalg.ormqr(raw, taus, c, left=left, transpose=transpose)
                for left, c in ((True, x), (False, adjoint_of(x))) for transpose in (False, True)
            ]  # fmt: skip
            return *jnp.linalg.qr(x, mode="complete"), q, r, p, *times

        full, r, q, r2, p, *times = compiled(all_, a)
        orthonormal(full, dtype)
        close(full @ r, a, dtype)
        close(q @ r2, a[:, p], dtype)
        size = np.abs(np.diagonal(r2))
        assert (size[1:] <= size[:-1] * (1 + 1e-3)).all()
        wanted = (full @ a, adjoint(full) @ a, adjoint(a) @ full, adjoint(full @ a))
        for found, expected in zip(times, wanted, strict=True):
            close(found, expected, dtype)


def check_eigh(dtype: Any, n: int) -> None:
    a = matrix(dtype, 2, n, n)
    a = a + adjoint(a)
    values, vectors = compiled(lambda x: tuple(jnp.linalg.eigh(x)), a)
    close(a @ vectors, vectors * values[..., None, :], dtype)
    orthonormal(vectors, dtype)
    close(values, np.linalg.eigvalsh(a), dtype)
    for lower in (True, False):
        _, d, e, taus = compiled(lambda x: tuple(lax.linalg.tridiagonal(x, lower=lower)), a)  # noqa: B023
        t = np.zeros((2, n, n), d.dtype)
        for k in range(2):
            t[k] = np.diag(d[k]) + np.diag(e[k], 1) + np.diag(e[k], -1)
        close(np.linalg.eigvalsh(t), values, dtype)
        assert taus.shape == (2, n - 1)


def check_svd(dtype: Any, n: int) -> None:
    for shape, full in (((n + 4, n), True), ((n, n + 4), False), ((n - 9, n), True)):
        a, k = matrix(dtype, *shape), min(shape)
        u, s, vt = compiled(lambda x: tuple(jnp.linalg.svd(x, full_matrices=full)), a)  # noqa: B023
        close((u[:, :k] * s) @ vt[:k], a, dtype)
        orthonormal(u, dtype)
        orthonormal(adjoint(vt), dtype)
        close(s, np.linalg.svd(a, compute_uv=False), dtype)


def check_eig(dtype: Any, n: int) -> None:
    a = matrix(dtype, n, n)
    values, left, right = compiled(lambda x: tuple(lax.linalg.eig(x)), a)
    close(a @ right, right * values, dtype, 50 * n)
    close(adjoint(left) @ a, values[:, None] * adjoint(left), dtype, 50 * n)
    close(np.linalg.norm(right, axis=0), np.ones(n), dtype)
    close(np.sort_complex(values), np.sort_complex(np.linalg.eigvals(a)), dtype, 2000)
    form, z = compiled(lambda x: tuple(lax.linalg.schur(x)), a)
    close(z @ form @ adjoint(z), a, dtype)
    orthonormal(z, dtype)
    assert not np.tril(form, -1 if np.dtype(dtype).kind == "c" else -2).any()
    h, _ = compiled(lambda x: tuple(lax.linalg.hessenberg(x)), a)
    close(np.sort_complex(np.linalg.eigvals(np.triu(h, -1))), np.sort_complex(values), dtype, 2000)


def check_tridiagonal_solve(dtype: Any, n: int) -> None:
    dl, d, du = np.moveaxis(matrix(dtype, 3, n, 3), -1, 0).copy()
    d[[0, 2]] += 4  # without that, rows are exchanged
    b = matrix(dtype, 3, n, 2)
    (x,) = compiled(lax.linalg.tridiagonal_solve, dl, d, du, b)
    for k in range(3):
        t = np.diag(d[k]) + np.diag(dl[k, 1:], -1) + np.diag(du[k, :-1], 1)
        np.testing.assert_allclose(t @ x[k], b[k], atol=1e4 * EPS[dtype])


CHECKS = [check_cholesky, check_triangular_solve, check_lu, check_qr, check_eigh, check_svd, check_eig,
          check_tridiagonal_solve]  # fmt: skip


@pytest.mark.parametrize("check", [check_cholesky, check_lu, check_tridiagonal_solve], ids=lambda f: f.__name__[6:])
def test_linear_algebra_of_more_rows_than_kernels_have(check: Any) -> None:
    check(np.float32, 37)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__.removeprefix("check_"))
def test_linear_algebra_of_complex_matrices(check: Any) -> None:
    """The texts are the same as for real matrices."""
    with hloom.enable_x64(True):
        check(np.complex128, 35)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_small_matrices(dtype: Any) -> None:
    """They use the same batched kernels as in this process."""
    a = matrix(dtype, 19, 4, 4)
    a = a + adjoint(a)
    lower, b = np.tril(a) + 5 * np.eye(4, dtype=dtype), matrix(dtype, 19, 4, 2)
    with hloom.enable_x64(True):
        values, vectors = compiled(lambda x: tuple(jnp.linalg.eigh(x)), a)
        (x,) = compiled(lambda a, b: [lax.linalg.triangular_solve(a, b, left_side=True, lower=True)], lower, b)
    close(a @ vectors, vectors * values[..., None, :], dtype)
    orthonormal(vectors, dtype)
    close(lower @ x, b, dtype)


@pytest.mark.slow
def test_matrices_without_a_decomposition_end() -> None:
    """NaN and infinity end in NaN, not in a loop; matrices of zeros and of one rank have decompositions."""
    bad = np.full((6, 6), np.nan, np.float32)
    values, vectors = compiled(lambda x: tuple(jnp.linalg.eigh(x)), bad)
    assert np.isnan(values).all() and np.isnan(vectors).all()
    values_of = standalone(hloom.jit(lambda x: jnp.linalg.svd(x, compute_uv=False)).lower(bad).module)
    (s,) = run_program(values_of, [bad])
    assert np.isnan(s).all()
    for a in (np.zeros((6, 4), np.float32), np.outer(np.arange(6), np.ones(4)).astype(np.float32)):
        u, s, vt = compiled(lambda x: tuple(jnp.linalg.svd(x)), a)
        close((u[:, :4] * s) @ vt, a, np.float32)
        orthonormal(u, np.float32)
        orthonormal(vt.T, np.float32)
    for scale in (1e-30, 1e30):
        a = matrix(np.float32, 6, 6) * np.float32(scale)
        (s,) = run_program(values_of, [a])
        close(s, np.linalg.svd(a.astype(float), compute_uv=False), np.float32)


# Custom calls

CSR = """\
HloModule m

ENTRY e {
  values = f32[4] parameter(0)
  columns = s32[4] parameter(1)
  starts = s32[4] parameter(2)
  dense = f32[5,2] parameter(3)
  ROOT r = f32[3,2] custom-call(values, columns, starts, dense), custom_call_target="cpu_csr_sparse_dense_ffi"
}
"""
TOPK = """\
HloModule m

ENTRY e {
  x = f32[3,9] parameter(0)
  ROOT r = (f32[3,2], s32[3,2]) custom-call(x), custom_call_target="TopK"
}
"""
SHARDING = """\
HloModule m

ENTRY e {
  x = f32[3,9] parameter(0)
  s = f32[3,9] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  e = f32[3,9] custom-call(), custom_call_target="AllocateBuffer"
  m = f32[3,9] multiply(e, s)
  ROOT r = f32[3,9] add(s, m)
}
"""


def test_custom_calls_that_hloom_has_itself() -> None:
    x = matrix(np.float32, 3, 9)
    values, positions = run_program(standalone(hlo.parse(TOPK)), [x])
    np.testing.assert_array_equal(values, -np.sort(-x, -1)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(x, positions, -1), values)
    (found,) = run_program(standalone(hlo.parse(SHARDING)), [x])
    np.testing.assert_array_equal(found, x)


def test_sparse_times_dense_of_integers() -> None:
    program = standalone(hlo.parse(CSR.replace("f32", "s32")))
    values, dense = np.arange(1, 5, dtype=np.int32), np.arange(10, dtype=np.int32).reshape(5, 2)
    (found,) = run_program(program, [values, np.array([0, 4, 2, 1], np.int32), np.array([0, 2, 2, 4], np.int32), dense])
    np.testing.assert_array_equal(found, [[16, 19], [0, 0], [3 * 4 + 4 * 2, 3 * 5 + 4 * 3]])


def test_sparse_times_dense_stays_inside_of_its_arrays() -> None:
    program = standalone(hlo.parse(CSR))
    values, dense = np.arange(1, 5, dtype=np.float32), np.arange(10, dtype=np.float32).reshape(5, 2)
    columns, starts = np.array([0, 4, 2, 1], np.int32), np.array([0, 2, 2, 4], np.int32)
    (found,) = run_program(program, [values, columns, starts, dense])
    np.testing.assert_array_equal(found, [[16, 19], [0, 0], [3 * 4 + 4 * 2, 3 * 5 + 4 * 3]])
    (found,) = run_program(program, [values, np.array([0, 5, 2, -1], np.int32), starts, dense])
    assert np.isnan(found[[0, 2]]).all() and not found[1].any()
    (found,) = run_program(program, [values, columns, np.array([0, 2, 1, 9], np.int32), dense])
    assert np.isnan(found[[1, 2]]).all()


LEFT_OUT = [
    ('custom-call(x), custom_call_target="my.own"', "'my.own': it is no target of hloom's own"),
    ('custom-call(x), custom_call_target="tpu_custom_call"', "its code is for TPUs"),
    ('custom-call(x), custom_call_target="xla_python_cpu_callback"', "it calls a Python function of the process"),
]


@pytest.mark.parametrize(("call", "said"), LEFT_OUT)
def test_calls_that_do_not_leave_the_process_are_named(call: str, said: str) -> None:
    text = f"HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT outside = f32[2] {call}\n}}\n"
    with pytest.raises(UnsupportedError, match=f"custom-call outside: .*{said}"):
        standalone(hlo.parse(text))

"""Many small factorisations in lanes give the same results as one after the other, also if a matrix has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.element_type import ElementType
from hloom.numba_backend.linalg import forms

import hloom
import hloom.numpy as jnp
from hloom import lax

COUNTS = (8, 17, 40)
TYPES = {"f32": np.float32, "f64": np.float64}


def matrices(kind: str, count: int, m: int, n: int) -> np.ndarray:
    """Random ones; a zero matrix, a NaN, an infinity, and a row of large numbers among them."""
    a = np.random.default_rng(m * n + count).standard_normal((count, m, n))
    a[1] = 0
    a[2, m - 1, 0] = np.nan
    a[3, 0, n - 1] = np.inf
    a[4, m - 1] *= 1e15
    return a.astype(TYPES[kind])


def positive(kind: str, count: int, n: int) -> np.ndarray:
    a = np.random.default_rng(n).standard_normal((count, n, n))
    a = a @ a.swapaxes(1, 2) + n * np.eye(n)
    a[1] = -a[1]
    a[2, n - 1, n - 1] = np.nan
    a[3] = 0
    return a.astype(TYPES[kind])


def both(function: Callable[..., Any], a: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same results with the side-by-side kernels as without them, up to rounding."""
    used = []
    chosen = forms.fits_lanes

    def spy(*arguments: Any) -> bool:
        used.append(chosen(*arguments))
        return used[-1]

    results = []
    with hloom.enable_x64(True):
        for choose in (spy, lambda *_: False):
            monkeypatch.setattr(forms, "fits_lanes", choose)
            results.append([np.asarray(x) for x in hloom.tree.leaves(hloom.jit(lambda x: function(x))(a))])
    assert all(used) and used
    eps = np.finfo(a.dtype).eps
    for found, expected in zip(*results, strict=True):
        if found.dtype == np.int32:
            np.testing.assert_array_equal(found, expected)
            continue
        for one, other in zip(found, expected, strict=True):
            finite = other[np.isfinite(other)]
            np.testing.assert_allclose(one, other, rtol=0, atol=64 * eps * np.abs(finite).max(initial=0))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16])
def test_cholesky(n: int, count: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = positive(kind, count, n)
    both(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), a, monkeypatch)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_potrf_keeps_the_other_triangle(uplo: str) -> None:
    a = positive("f32", 20, 5)
    text = f"""HloModule m
ENTRY e {{
  a = f32[20,5,5] parameter(0)
  ROOT c = (f32[20,5,5], s32[20]) custom-call(a), custom_call_target="lapack_spotrf_ffi",
    api_version=API_VERSION_TYPED_FFI, backend_config={{uplo = {ord(uplo)} : ui8}}
}}"""
    found, info = hloom.run_hlo(text, a)
    expected, said = hloom.run_hlo(text, a, backend="evaluator")
    good = said == 0
    np.testing.assert_allclose(found[good], expected[good], rtol=1e-5, atol=1e-6)
    assert info[1] == said[1] and info[3] == said[3]
    other = np.triu_indices(5, 1) if uplo == "L" else np.tril_indices(5, -1)
    np.testing.assert_array_equal(found[:, *other], a[:, *other])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5), (5, 3), (8, 8)])
def test_lu(shape: tuple[int, int], count: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both(lax.linalg.lu, matrices(kind, count, *shape), monkeypatch)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5), (5, 3), (8, 8)])
def test_qr(shape: tuple[int, int], count: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a = matrices(kind, count, *shape)
    a[2:5] = a[0]  # Q of numbers that are not finite, or of very different sizes, has no few right digits
    both(lambda x: lax.linalg.qr(x, full_matrices=False), a, monkeypatch)
    q, r = hloom.jit(lambda x: lax.linalg.qr(x, full_matrices=False))(a)
    np.testing.assert_allclose(q @ np.asarray(r), a, atol=1e-5)


def test_what_is_not_done_side_by_side() -> None:
    assert not forms.fits_lanes(ElementType.F32, 7, 9)
    assert not forms.fits_lanes(ElementType.C64, 100, 9)
    assert not forms.fits_lanes(ElementType.F32, 100, 17 * 17)
    assert forms.fits_lanes(ElementType.F64, 4, 22 * 22)


def test_in_a_native_loop() -> None:
    a = positive("f32", 16, 4)
    a[1:4] = a[0]

    def step(_: Any, x: Any) -> Any:
        factor = jnp.linalg.cholesky(x)
        return factor @ factor.swapaxes(1, 2)

    np.testing.assert_allclose(lax.fori_loop(0, 3, step, jnp.asarray(a)), a, rtol=1e-5, atol=1e-5)

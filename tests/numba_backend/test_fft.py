"""Discrete Fourier transforms against NumPy, their derivatives against finite differences, and what they refuse."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.grad_check import check_derivatives

RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((3, 4, 5))
COMPLEX = REAL + 1j * RNG.standard_normal(REAL.shape)
MANY = RNG.standard_normal((2, 3, 2, 4, 3))

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
MORE = ("fftn", "ifftn", "rfftn", "irfftn")
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "one": [{}, {"n": 3}, {"n": 8}, {"axis": 0}, {"n": 1, "axis": 1}, {"norm": "ortho"}, {"norm": "forward", "n": 6}],
    "two": [{}, {"s": (6, 3)}, {"axes": (2, 0)}, {"s": (2, 7), "axes": (0, -2), "norm": "ortho"}],
    "more": [{}, {"axes": (1,)}, {"s": (2, 3, 4), "axes": (2, 1, 0)}, {"norm": "forward"}],
}
CASES = [
    (name, options)
    for kind, names in (("one", ONE), ("two", TWO), ("more", MORE))
    for name in names
    for options in OPTIONS[kind]
]


def _is_real(name: str) -> bool:
    return name.startswith(("rfft", "ihfft"))


def _id(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(f"{k}={v}" for k, v in value.items()) or "plain"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name,options", CASES, ids=_id)
def test_as_in_numpy(name: str, options: dict[str, Any]) -> None:
    x = REAL if _is_real(name) else COMPLEX
    expected = getattr(np.fft, name)(x, **options)
    function = functools.partial(getattr(jnp.fft, name), **options)
    with hloom.enable_x64(True):
        for found in (function(x), hloom.jit(function)(x)):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MORE)
def test_more_dimensions_than_hlo_transforms_at_once(name: str) -> None:
    expected = getattr(np.fft, name)(MANY)
    with hloom.enable_x64(True):
        np.testing.assert_allclose(np.asarray(getattr(jnp.fft, name)(MANY)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name,options", CASES[::2], ids=_id)
def test_derivatives(name: str, options: dict[str, Any]) -> None:
    x = (REAL if _is_real(name) else COMPLEX)[:2, :3]
    with hloom.enable_x64(True):
        check_derivatives(lambda xs: [getattr(jnp.fft, name)(xs[0], **options) ** 2], [x], tolerance=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_gradients_of_a_spectrum_against_differences_of_matrices(n: int) -> None:
    """The transpose of a real transform, column by column."""
    with hloom.enable_x64(True):
        half = n // 2 + 1
        forward = np.fft.rfft(np.eye(n))  # row j: the spectrum of the unit vector j
        for k in range(half):
            found = hloom.grad(lambda x, k=k: jnp.fft.rfft(x)[k].imag)(np.ones(n))
            np.testing.assert_allclose(np.asarray(found), forward[:, k].imag, atol=1e-12)


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32"])
def test_types(dtype: str) -> None:
    assert jnp.fft.fft(jnp.ones(4, dtype)).dtype == "complex64"
    assert lax.fft(jnp.ones(4, dtype), lax.FftType.FFT, (4,)).dtype == "complex64"
    assert lax.fft(jnp.ones(3, "complex64"), "irfft", (4,)).dtype == "float32"


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_frequencies_and_shifts(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        if n:
            expected = getattr(np.fft, name)(n, 0.5).astype(np.float32)
            np.testing.assert_allclose(np.asarray(getattr(jnp.fft, name)(n, 0.5)), expected, rtol=1e-6)
    x = np.arange(n * 3).reshape(n, 3)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (0, -1)):
            expected = getattr(np.fft, name)(x, axes)
            np.testing.assert_array_equal(np.asarray(getattr(jnp.fft, name)(x, axes)), expected)


@pytest.mark.parametrize("n", [3, 6, 9, 12])
@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["eager", "jit"])
def test_equal_numbers_have_one_frequency(n: int, wrap: Callable[..., Any]) -> None:
    """The factors are rounded once: the cosine of a third of a turn is -0.5."""
    with hloom.enable_x64():
        np.testing.assert_array_equal(wrap(jnp.fft.rfft)(jnp.ones((3, n))), np.fft.rfft(np.ones((3, n))))


def test_no_elements() -> None:
    assert jnp.fft.fftn(jnp.ones((0, 2))).shape == (0, 2)
    assert jnp.fft.irfft(jnp.ones((4, 1))).shape == (4, 0)
    assert jnp.fft.fftn(jnp.ones(())).shape == ()
    assert jnp.fft.ifftn(jnp.ones((3, 2)), axes=()).dtype == "complex64"
    assert hloom.grad(lambda x: jnp.abs(jnp.fft.fft(x)).sum())(jnp.ones((0, 3))).shape == (0, 3)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "complex rfft": (lambda: jnp.fft.rfft(COMPLEX), ValueError, "only real valued inputs"),
    "norm": (lambda: jnp.fft.fft(REAL, norm="x"), ValueError, "Invalid norm value 'x'"),
    "axis": (lambda: jnp.fft.fft(REAL, axis=7), ValueError, "axis 7 is out of bounds"),
    "axes for one": (lambda: jnp.fft.fft(REAL, axis=(0, 1)), ValueError, "does not support multiple axes"),
    "size 0": (lambda: jnp.fft.fft(REAL, n=0), ValueError, "must be positive"),
    "repeated": (lambda: jnp.fft.fftn(REAL, axes=(0, 0)), ValueError, "repeated axes"),
    "lengths": (lambda: jnp.fft.fftn(REAL, s=(1, 2), axes=(0,)), ValueError, "different lengths"),
    "too many": (lambda: jnp.fft.fftn(REAL[0], s=(1, 2, 3)), ValueError, "3 sizes"),
    "two axes": (lambda: jnp.fft.fft2(REAL, axes=(0,)), ValueError, "only supports 2 axes"),
    "a list": (lambda: jnp.fft.fft([1.0]), TypeError, "requires ndarray or scalar arguments"),  # type: ignore[arg-type]
    "fftfreq n": (lambda: jnp.fft.fftfreq([1]), ValueError, "only takes an int"),  # type: ignore[arg-type]
    "kind": (lambda: lax.fft(REAL, "x", (5,)), ValueError, "Unknown FFT type 'x'"),
    "kind's type": (lambda: lax.fft(REAL, 2, (5,)), TypeError, "Unknown FFT type value"),  # type: ignore[arg-type]
    "sizes": (lambda: lax.fft(REAL, "FFT", (4,)), ValueError, r"must be the operand's sizes \[5\]"),
    "four": (lambda: lax.fft(MANY, "FFT", (3, 2, 4, 3)), ValueError, "must name 1 to 3 dimensions"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()

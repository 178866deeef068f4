"""Fourier transforms as kernels: every way that a length is cut, batches, columns, threads; and few kernels for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.hlo.opcode import Opcode
from hloom.numba_backend.emit.fourier import plan_of
from hloom.numba_backend.lowering_rules import HOW

import hloom
import hloom.numpy as jnp

RNG = np.random.default_rng(7)
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 15, 16, 17, 26, 32, 49, 60, 64, 97, 128, 243, 360, 1000, 2048)
SIDE_BY_SIDE = (2, 3, 5, 8, 15, 16, 17, 34, 37, 94, 101, 105, 127, 131, 254, 262, 393, 512, 2 * 3 * 11 * 31)
KINDS = {"c64": (np.complex64, 3e-6), "c128": (np.complex128, 4e-15)}


def transformed(name: str, x: np.ndarray, **options: Any) -> np.ndarray:
    with hloom.enable_x64(True):
        return np.asarray(hloom.jit(lambda a: getattr(jnp.fft, name)(a, **options))(x))


def close(found: np.ndarray, expected: np.ndarray, eps: float) -> None:
    """Errors of a transform are relative to the largest result."""
    assert found.shape == expected.shape
    largest = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=eps * largest)


def complex_numbers(kind: str, *shape: int) -> np.ndarray:
    x = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    return x.astype(KINDS[kind][0])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int, kind: str) -> None:
    dtype, eps = KINDS[kind]
    x = complex_numbers(kind, 3, n)
    wide = x.astype(np.complex128)
    close(transformed("fft", x), np.fft.fft(wide), eps)
    close(transformed("ifft", x), np.fft.ifft(wide), eps)
    real = x.real.copy()
    close(transformed("rfft", real), np.fft.rfft(real.astype(np.float64)), eps)
    spectrum = np.fft.rfft(real.astype(np.float64)).astype(dtype)
    close(transformed("irfft", spectrum, n=n), np.fft.irfft(spectrum.astype(np.complex128), n), eps)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIDE_BY_SIDE)
@pytest.mark.parametrize("items", [8, 21])
def test_rows_side_by_side(items: int, n: int, kind: str) -> None:
    """Rows of very different sizes: none is in the errors of another one. The imaginary parts of the first number, and
    of the last one for even lengths, do not count."""
    dtype, eps = KINDS[kind]
    x = complex_numbers(kind, items, n) * (10.0 ** np.arange(items)[:, None]).astype(dtype)
    x[3] = 0
    spectrum = np.fft.rfft(x.real.astype(np.float64)).astype(dtype)
    spectrum[:, 0] += 1j
    inputs = {"fft": x, "ifft": x, "rfft": x.real.copy(), "irfft": spectrum}
    for name, given in inputs.items():
        options = {"n": n} if name == "irfft" else {}
        found = transformed(name, given, **options)
        expected = getattr(np.fft, name)(given.astype(np.result_type(given, np.float64)), **options)
        for row, other in zip(found, expected, strict=True):
            close(row, other, eps)


def test_what_is_not_finite_stays_in_its_row() -> None:
    x = RNG.standard_normal((19, 45)).astype(np.float32)
    expected = np.fft.rfft(x.astype(np.float64))
    x[4, 7] = np.nan
    found = transformed("rfft", x)
    assert np.isnan(found[4]).all()
    for row in {*range(19)} - {4}:
        close(found[row], expected[row], 3e-6)


COLUMNS = [(2, 4, 1), (1, 1, 6), (3, 5, 2), (2, 16, 7), (1, 12, 33), (2, 64, 40), (1, 600, 70)]
FEW_COLUMNS = [(2, 36, 2), (1, 32, 3), (1, 45, 5), (2, 17, 3)]
"""Three passes or more; the first two together have too few columns for a loop."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", [*COLUMNS, *FEW_COLUMNS])
def test_columns(shape: tuple[int, ...]) -> None:
    """The dimension before the last one is transformed along columns: more or less of them than a block has."""
    x = complex_numbers("c64", *shape)
    close(transformed("fft2", x), np.fft.fft2(x.astype(np.complex128)), 4e-6)
    close(transformed("ifft2", x), np.fft.ifft2(x.astype(np.complex128)), 4e-6)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 17, 16), (131, 8), (3, 31, 21), (1, 262, 35), (167, 50)])
def test_columns_with_large_prime_factors(shape: tuple[int, ...], kind: str) -> None:
    """They are interleaved as they are, in blocks of 8 or 16, the last of which overlaps the one before."""
    eps = KINDS[kind][1]
    x = complex_numbers(kind, *shape)
    close(transformed("fft2", x), np.fft.fft2(x.astype(np.complex128)), eps)
    close(transformed("ifft2", x), np.fft.ifft2(x.astype(np.complex128)), eps)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft"])
def test_a_convolution_of_many_rows_is_one_kernel(name: str) -> None:
    """The chirp is multiplied where the rows are interleaved, in the cache; alone it is passes over memory."""
    for n in (167, 501, 2 * 233):
        x = jnp.zeros((40, n), np.float32 if name in ("rfft", "ihfft") else np.complex64)
        text = str(hloom.jit(getattr(jnp.fft, name)).lower(x).compile().kernels())
        assert "transforms" in text
        assert "chirped" not in text


@pytest.mark.parametrize("shape", [(700, 128), (3, 20000), (64, 96, 50)])
def test_threads_share_the_work(shape: tuple[int, ...]) -> None:
    x = complex_numbers("c128", *shape)
    close(transformed("fftn", x), np.fft.fftn(x), 1e-14)


def test_nothing_and_what_is_not_finite() -> None:
    assert transformed("fft", np.zeros((0, 4), np.complex64)).shape == (0, 4)
    x = np.ones(8, np.complex64)
    x[3] = np.nan
    assert np.isnan(transformed("fft", x)).all()
    np.testing.assert_array_equal(transformed("fft", np.zeros(16, np.complex64)), np.zeros(16))


def test_a_convolution_of_spectra() -> None:
    """A use of all: filtering by a product of spectra."""
    x, kernel = RNG.standard_normal(300), RNG.standard_normal(45)
    n = 344
    with hloom.enable_x64(True):
        product = hloom.jit(lambda a, b: jnp.fft.irfft(jnp.fft.rfft(a, n) * jnp.fft.rfft(b, n), n))(x, kernel)
    np.testing.assert_allclose(product, np.convolve(x, kernel), atol=1e-12)


def test_all_powers_of_two_share_two_texts() -> None:
    texts = {(plan.first, plan.kinds, plan.last) for k in range(5, 20) if (plan := plan_of(1 << k, 1))}
    assert len(texts) == 2


def test_a_new_length_or_batch_has_the_kernels_of_another() -> None:
    def kernels(*shape: int) -> list[str]:
        compiled = hloom.jit(lambda x: jnp.fft.fft2(x)).lower(jnp.zeros(shape, np.complex64)).compile()
        return [line for line in str(compiled.kernels()).splitlines() if not line.startswith("#")]

    assert kernels(2, 64, 1024) == kernels(5, 256, 4096)


def test_no_row_calls_python() -> None:
    assert HOW[Opcode.FFT] == "kernels"
    compiled = hloom.jit(jnp.fft.rfft).lower(jnp.zeros((4, 1018), np.float32)).compile()
    assert "transform" in str(compiled.kernels())

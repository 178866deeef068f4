"""`hloom.scipy.signal` and `hloom.scipy.fft` against SciPy, their derivatives and batches, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import hloom
import hloom.scipy.fft as fft
import hloom.scipy.signal as signal
from support.batch_check import check_batches
from support.grad_check import check_derivatives

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 7)), RNG.standard_normal((3, 4))
Z = X + 1j * RNG.standard_normal((6, 7))
LONG, OTHER = RNG.standard_normal((2, 60)), RNG.standard_normal((2, 60))
MODES = ("full", "same", "valid")

CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    **{
        f"{name} {mode}": (lambda m, x, y, f=name, k=mode: (getattr(m, f)(x, y, k), getattr(m, f)(y, x, k)), [X, Y])
        for name in ("convolve", "correlate", "convolve2d", "correlate2d", "fftconvolve")
        for mode in MODES
    },
    **{
        f"complex {name}": (
            lambda m, x, y, f=name: [getattr(m, f)(*a, k) for k in MODES for a in ((x, y), (y, x))],
            [Z, Y * 1j + Y],
        )
        for name in ("convolve", "correlate", "correlate2d", "fftconvolve")
    },
    "convolve crossed": (lambda m, x, y: [m.convolve(x, y, k) for k in ("full", "same")], [X[:2], Y]),
    "convolve by transforms": (lambda m, x, y: m.convolve(x, y, method="fft"), [X[0], Y[0]]),
    "convolve one element": (lambda m, x: [m.convolve(x, x[:1], k) for k in MODES], [X[0]]),
    "fftconvolve axes": (lambda m, x, y: [m.fftconvolve(x, y, k, axes=1) for k in MODES], [X[:3], Y]),
    "detrend": (lambda m, x: (m.detrend(x), m.detrend(x, 0, "constant"), m.detrend(x, axis=0, bp=[2, 3])), [X]),
    "welch": (lambda m, x: (*m.welch(x, nperseg=16), *m.welch(x[0], 2.0, nperseg=60)), [LONG]),
    "welch options": (
        lambda m, x: (
            *m.welch(x, 3.0, "boxcar", 16, 4, 20, "linear", scaling="spectrum", average="median"),
            *m.welch(x.T, nperseg=15, detrend=False, return_onesided=False, axis=0),
            *m.welch(x, window=np.arange(1.0, 17)),
        ),
        [LONG],
    ),
    "csd": (
        lambda m, x, y: (*m.csd(x, y, nperseg=16), *m.csd(x, y[:, :50], nperseg=20, average="median")),
        [LONG, OTHER],
    ),
    "stft": (lambda m, x: (*m.stft(x, nperseg=16), *m.stft(x, 2.0, ("tukey", 0.3), 15, 3, boundary=None)), [LONG]),
    "stft at the ends": (
        lambda m, x: [m.stft(x, nperseg=16, boundary=b, padded=False) for b in ("even", "odd", "constant", "zeros")],
        [LONG],
    ),
    "istft": (lambda m, x: (*m.istft(m.stft(x, nperseg=16)[2]), *m.istft(m.stft(x, nperseg=9)[2], nperseg=9)), [LONG]),
    "istft two-sided": (
        lambda m, x: m.istft(
            m.stft(x, nperseg=16, noverlap=12, return_onesided=False)[2], noverlap=12, input_onesided=False
        ),
        [LONG + 0j],
    ),
    "istft axes": (lambda m, x: m.istft(m.stft(x, nperseg=8)[2].swapaxes(0, 2), time_axis=0, freq_axis=1), [LONG]),
}  # fmt: skip


def both(function: Callable[..., Any], ours: Any, theirs: Any, inputs: list[Any]) -> None:
    expected = hloom.tree.leaves(function(theirs, *inputs))
    with hloom.enable_x64(True):
        found = function(ours, *inputs)
        compiled = hloom.jit(lambda *xs: function(ours, *xs))(*inputs)
        for leaves in (hloom.tree.leaves(found), hloom.tree.leaves(compiled)):
            for a, b in zip(leaves, expected, strict=True):
                assert (a.shape, a.dtype) == (np.shape(b), np.asarray(b).dtype)
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-9)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Input data is complex")
def test_as_in_scipy(name: str) -> None:
    function, inputs = CASES[name]
    both(function, signal, scipy.signal, inputs)


COSINES: dict[str, Callable[..., Any]] = {
    "sizes": lambda m, x: [f(x[:, :n], norm=k) for f in (m.dct, m.idct) for n in (1, 2, 5, 6) for k in (None, "ortho")],
    "n": lambda m, x: [f(x, n=n, axis=a, norm="ortho") for f in (m.dct, m.idct) for n in (1, 4, 9) for a in (0, 1)],
    "several": lambda m, x: [f(x, **k) for f in (m.dctn, m.idctn) for k in ({}, {"s": 5}, {"axes": [0], "s": [4]})],
    "complex": lambda m, x: [m.dct(x + 1j * x[::-1]), m.idctn(x * 1j, norm="ortho", s=(4, 9))],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", COSINES)
def test_cosine_transforms(name: str) -> None:
    both(COSINES[name], fft, scipy.fft, [X])


DERIVATIVES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "correlate": (lambda x, y: signal.correlate(x, y, "same"), [X, Y]),
    "fftconvolve": (lambda x, y: signal.fftconvolve(x, y, "valid"), [X, Y]),
    "detrend": (lambda x: signal.detrend(x, bp=3), [X]),
    "stft": (lambda x: signal.stft(x, nperseg=8)[2].real, [LONG[:, :20]]),
    "istft": (lambda x: signal.istft(x * (1 + 2j), nperseg=8)[1], [X[:5]]),
    "welch": (lambda x: signal.welch(x, nperseg=8)[1], [LONG[:, :20]]),
    "dct": (lambda x: fft.dct(x, norm="ortho"), [X]),
    "idctn": (fft.idctn, [X]),
}


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize(
    "name",
    [
        "correlate",
        "dct",
        *[pytest.param(n, marks=pytest.mark.slow) for n in list(DERIVATIVES) if n not in ("correlate", "dct")],
    ],
)
def test_derivatives_and_batches(name: str) -> None:
    function, inputs = DERIVATIVES[name]
    with hloom.enable_x64(True):
        check_derivatives(lambda xs: [function(*xs)], inputs, tolerance=1e-5)
        check_batches(function, inputs)


def test_integers_and_small_floats() -> None:
    assert signal.convolve(np.arange(3), np.arange(2)).dtype == "float32"
    assert signal.detrend(np.arange(5)).dtype == "float32"
    assert signal.welch(np.arange(32), nperseg=8, average="median")[1].dtype == "float32"
    assert fft.dct(np.arange(5)).dtype == "float32"
    frequencies, times, found = signal.stft(LONG.astype(np.float32), nperseg=16)
    assert (frequencies.dtype, times.dtype, found.dtype) == ("float32", "float32", "complex64")


def test_signals_without_elements_have_no_spectrum() -> None:
    assert [a.shape for a in signal.welch(np.zeros((2, 0)), nperseg=1)] == [(2, 0), (2, 0)]


def test_what_a_user_is_told() -> None:
    with pytest.warns(UserWarning, match="nperseg=256 is greater than input_length=60, using nperseg=60"):
        signal.stft(LONG)
    with pytest.warns(UserWarning, match="Input data is complex"):
        signal.welch(LONG + 1j)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mode": (lambda: signal.convolve(X, Y, "x"), ValueError, "mode must be one of"),
    "method": (lambda: signal.convolve(X, Y, method="x"), ValueError, "expected 'auto', 'fft', or 'direct'"),
    "rank": (lambda: signal.convolve(X, Y[0]), ValueError, "same number of dimensions"),
    "empty": (lambda: signal.convolve(X, Y[:0]), ValueError, "zero-size arrays not supported"),
    "valid": (lambda: signal.convolve(X[:2], Y, "valid"), ValueError, "at least as large as the other"),
    "boundary": (lambda: signal.convolve2d(X, Y, boundary="wrap"), NotImplementedError, "boundary='fill'"),
    "matrices": (lambda: signal.correlate2d(X[0], Y[0]), ValueError, "2-dimensional inputs"),
    "axes": (lambda: signal.fftconvolve(X, Y, axes=0), ValueError, "mapped axes must have same shape"),
    "trend": (lambda: signal.detrend(X, type="x"), ValueError, "Trend type must be 'linear' or 'constant'"),
    "breaks": (lambda: signal.detrend(X, bp=9), ValueError, "Breakpoints must be non-negative"),
    "overwrite": (lambda: signal.detrend(X, overwrite_data=True), NotImplementedError, "overwrite_data"),
    "nfft": (lambda: signal.welch(LONG, nperseg=16, nfft=8), ValueError, "nfft must be greater than or equal"),
    "overlap": (lambda: signal.welch(LONG, nperseg=16, noverlap=16), ValueError, "noverlap must be less than"),
    "nperseg": (lambda: signal.welch(LONG, nperseg=0), ValueError, "nperseg must be a positive integer"),
    "window": (lambda: signal.welch(LONG, window=np.ones(99)), ValueError, "window is longer than input signal"),
    "window rank": (lambda: signal.welch(LONG, window=np.ones((2, 2))), ValueError, "window must be 1-D"),
    "scaling": (lambda: signal.welch(LONG, scaling="x"), ValueError, "Unknown scaling: x"),
    "average": (lambda: signal.welch(LONG, average="x"), ValueError, 'average must be "median" or "mean"'),
    "ends": (lambda: signal.stft(LONG, nperseg=16, boundary="x"), ValueError, "Unknown boundary option 'x'"),
    "istft rank": (lambda: signal.istft(LONG[0] + 0j), ValueError, "at least 2d"),
    "istft axes": (lambda: signal.istft(X, freq_axis=1), ValueError, "differing time and frequency axes"),
    "type": (lambda: fft.dct(X, type=3), NotImplementedError, "only type 2"),
    "norm": (lambda: fft.dct(X, norm="forward"), ValueError, "norm='forward' is not implemented"),
    "size": (lambda: fft.dct(X, n=0), ValueError, "must be positive"),
    "sizes": (lambda: fft.dctn(X, s=(1, 2, 3)), ValueError, "at most x.ndim"),
    "lengths": (lambda: fft.dctn(X, s=(1, 2), axes=[0]), ValueError, "different lengths"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosine_transforms_of_16_bit_floats_are_float32(name: str, dtype: Any) -> None:
    x = np.array([[1, 2, 3], [4, 0, -1]], np.float32)
    found = getattr(fft, name)(hloom.numpy.asarray(x, dtype))
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.asarray(found), getattr(scipy.fft, name)(x), rtol=1e-5, atol=1e-5)

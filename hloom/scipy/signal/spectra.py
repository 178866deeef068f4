"""Spectra of signals, from Fourier transforms of windowed segments. Source: scipy.signal, and jax.scipy.signal where
they differ."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...lax.movement import canonical_axis
from ...numpy.promotion import check_arraylike, promote_dtypes_inexact
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.errors import OperandError
from .trends import detrend as _detrend

Detrend = bool | str | Callable[[Any], Any]


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Value, Value, Value]:
    """(frequencies, times, Z): the Fourier transforms of segments of x; Z has the times as a new last axis.

    Args:
      x: signals along `axis`; fs: samples in a unit of time.
      window: "hann", another name or pair for `scipy.signal.get_window`, or an array of a segment's length.
      nperseg, noverlap: the length of a segment, and by how much it overlaps the next, half of it by default.
      nfft: the size that is transformed, with zeros added to a segment.
      detrend: "constant" or "linear" for `detrend`, a function of segments, or False.
      return_onesided: of real signals, frequencies that are not negative only.
      boundary: how the signal goes on at both ends: "even", "odd", "constant", "zeros", or None; padded: whether zeros
        are added so that all of the signal is in segments.

    >>> x = jnp.sin(2 * jnp.pi * 32 * jnp.arange(256) / 256.0)
    >>> f, t, z = signal.stft(x, fs=256.0, nperseg=64)
    >>> f.shape, t.shape, z.shape, f[jnp.argmax(abs(z[:, 4]))]
    ((33,), (9,), (33, 9), Array(32., dtype=float32))
    """
    form = _form(x, None, window, nperseg, noverlap, nfft, detrend, return_onesided, axis, boundary, padded)
    found = _spectra(form.x, None, form.window, fs, form.static, "spectrum", False)
    frequencies, times, z = found
    return frequencies, times, z


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """(frequencies, P): the cross power spectral density of x and y by Welch's method.

    scaling: "density", or "spectrum" for a power at each frequency. average: "mean" or "median" over the segments.
    nperseg is the length of the signals by default. Without y it is computed for x and x, and is real. The other
    arguments are as for `stft`.

    >>> t = jnp.arange(256) / 256.0
    >>> x, y = jnp.sin(2 * jnp.pi * 32 * t), jnp.cos(2 * jnp.pi * 32 * t)
    >>> f, p = signal.csd(x, y, fs=256.0, nperseg=64)
    >>> f[jnp.argmax(abs(p))], p.dtype
    (Array(32., dtype=float32), dtype('complex64'))
    """
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    form = _form(x, y, window, nperseg, noverlap, nfft, detrend, return_onesided, axis, None, False)
    frequencies, _, power = _spectra(form.x, form.y, form.window, fs, form.static, scaling, True)
    return frequencies, _averaged(power, average)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """(frequencies, P): the power spectral density of x by Welch's method. Arguments as for `csd`.

    >>> x = jnp.sin(2 * jnp.pi * 32 * jnp.arange(256) / 256.0)
    >>> f, p = signal.welch(x, fs=256.0, nperseg=64)
    >>> f[jnp.argmax(p)], p.shape
    (Array(32., dtype=float32), (33,))
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Value, Value]:
    """(times, x): the signal that `stft` with the same arguments maps to Zxx.

    boundary: whether the signal was extended. The times are, as in SciPy, as many as x has elements in dimension 0.

    >>> x = jnp.sin(jnp.arange(64.0))
    >>> f, t, z = signal.stft(x, nperseg=16)
    >>> _, y = signal.istft(z, nperseg=16)
    >>> bool(jnp.allclose(x, y, atol=1e-5))
    True
    """
    check_arraylike("istft", Zxx)
    z: Any = jnp.asarray(Zxx)
    if z.ndim < 2:
        raise OperandError(f"istft: input stft must be at least 2d, not {z.aval.str_short()}", "rank")
    by_frequency, by_time = canonical_axis(freq_axis, z.ndim), canonical_axis(time_axis, z.ndim)
    if by_frequency == by_time:
        raise ValueError("Must specify differing time and frequency axes!")
    usual = 2 * (z.shape[by_frequency] - 1) if input_onesided else z.shape[by_frequency]
    length = operator.index(nperseg) if nperseg else usual
    if nfft is None:
        size = usual + (input_onesided and length == usual + 1)
    else:
        size = operator.index(nfft)
    overlap = length // 2 if noverlap is None else operator.index(noverlap)
    _check_lengths(length, overlap, size)
    z = jnp.moveaxis(z.astype(dtypes.to_complex(z.dtype)), (by_time, by_frequency), (-2, -1))
    place = by_time - (by_frequency < by_time)
    return _inverse(
        z, _window(window, length, z.dtype), fs, length, overlap, size, bool(input_onesided), bool(boundary), place
    )


# ---- arguments


class _Static(NamedTuple):
    """The static facts."""

    length: int
    overlap: int
    size: int
    detrend: Any
    one_sided: bool
    axis: int
    boundary: str | None
    padded: bool


class _Form(NamedTuple):
    x: Any
    y: Any
    window: Any
    static: _Static


_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def _form(
    x: ArrayLike,
    y: ArrayLike | None,
    window: Any,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Detrend,
    one_sided: bool,
    axis: int,
    boundary: str | None,
    padded: bool,
) -> _Form:
    """The arguments of a function, checked: signals of one length, the window as an array."""
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(_BOUNDARIES)}")
    if isinstance(detrend, str) and detrend not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', not {detrend!r}")
    given = [x] if y is None else [x, y]
    signals: list[Any] = list(promote_dtypes_inexact(*given, name="spectra"))
    if y is not None and signals[0].ndim != signals[1].ndim:
        raise OperandError(f"the signals must have the same rank ({signals[0].ndim} vs {signals[1].ndim})", "rank")
    place = canonical_axis(axis, signals[0].ndim)
    longest = max(s.shape[place] for s in signals)
    signals = [_extended_to(s, place, longest) for s in signals]
    length = _length(window, nperseg, longest)
    overlap = length // 2 if noverlap is None else operator.index(noverlap)
    size = length if nfft is None else operator.index(nfft)
    _check_lengths(length, overlap, size)
    if one_sided and any(jnp.iscomplexobj(s) for s in signals):
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)
        one_sided = False
    static = _Static(length, overlap, size, detrend, bool(one_sided), place, boundary, bool(padded))
    values = _window(window, length, signals[0].dtype)
    return _Form(signals[0], None if y is None else signals[1], values, static)


def _check_lengths(length: int, overlap: int, size: int) -> None:
    if length < 1:
        raise ValueError(f"nperseg must be a positive integer, not {length}")
    if size < length:
        raise ValueError(f"nfft must be greater than or equal to nperseg: {size} and {length}")
    if overlap >= length:
        raise ValueError(f"noverlap must be less than nperseg: {overlap} and {length}")


def _extended_to(x: Any, axis: int, size: int) -> Any:
    missing = size - x.shape[axis]
    return jnp.pad(x, [(0, missing if d == axis else 0) for d in range(x.ndim)]) if missing else x


def _length(window: Any, nperseg: int | None, longest: int) -> int:
    """The length of a segment."""
    if nperseg is not None and operator.index(nperseg) < 1:
        raise ValueError(f"nperseg must be a positive integer, not {nperseg}")
    if isinstance(window, str | tuple):
        if nperseg is None:
            return longest
        if nperseg > longest > 0:
            warnings.warn(
                f"nperseg={nperseg} is greater than input_length={longest}, using nperseg={longest}", stacklevel=4
            )
            return longest
        return operator.index(nperseg)
    shape = jnp.shape(window)
    if len(shape) != 1:
        raise ValueError(f"window must be 1-D, not of shape {shape}")
    if shape[0] > longest:
        raise ValueError(f"window is longer than input signal: {shape[0]} and {longest}")
    if nperseg is not None and nperseg != shape[0]:
        raise ValueError(f"value specified for nperseg is different from length of window: {nperseg} and {shape[0]}")
    return shape[0]


def _window(window: Any, length: int, dtype: Any) -> Any:
    """The window as an array of the dtype of signals."""
    if isinstance(window, str) and window == "hann":
        values = np.sin(np.arange(length) * np.pi / length) ** 2 if length > 1 else np.ones(1)
        return jnp.asarray(values.astype(dtype))
    if isinstance(window, str | tuple):
        from scipy.signal import get_window

        return jnp.asarray(get_window(window, length).astype(dtype))
    found = jnp.asarray(window)
    if found.shape != (length,):
        raise ValueError(f"window must have length of {length}, not the shape {found.shape}")
    return found if jnp.iscomplexobj(found) else found.astype(dtype)


# ---- the computations


@compound(static=("form", "scaling", "is_power"))
def _spectra(x: Any, y: Any, window: Any, fs: Any, form: _Static, scaling: str, is_power: bool) -> tuple[Any, Any, Any]:
    """Frequencies, times, and for each segment its transform, or with `is_power` the products of transforms."""
    dtype = dtypes.to_complex(x.dtype)
    real = dtypes.real_of(dtype)
    if not x.size or (y is not None and not y.size):
        return jnp.zeros(x.shape, real), jnp.zeros(x.shape, real), jnp.zeros(x.shape, dtype)
    total = window.sum()
    scale = 1.0 / (fs * (window * window).sum()) if scaling == "density" else 1.0 / (total * total)
    frequencies = (jnp.fft.rfftfreq if form.one_sided else jnp.fft.fftfreq)(form.size, 1 / fs, dtype=real)
    found = _transforms(x, window, form)
    if is_power:
        other = found if y is None else _transforms(y, window, form)
        found = (jnp.conj(found) * other * scale).astype(dtype)
        if form.one_sided:
            twice = np.full(found.shape[-1], 2, real)
            twice[0] = 1
            if form.size % 2 == 0:
                twice[-1] = 1
            found = found * twice
        found = found.real if y is None else found
    else:
        found = (found * jnp.sqrt(scale)).astype(dtype)
    step, half = form.length - form.overlap, form.length / 2
    times = (jnp.arange(found.shape[-2], dtype=real) * step + (0 if form.boundary is not None else half)) / fs
    return frequencies, times, jnp.moveaxis(found, -1, form.axis)


def _transforms(x: Any, window: Any, form: _Static) -> Any:
    """[..., segments, frequencies] of x."""
    x = _extended(jnp.moveaxis(x, form.axis, -1), form.boundary, form.length // 2)
    step = form.length - form.overlap
    if form.padded:
        x = _extended_to(x, x.ndim - 1, x.shape[-1] + -(x.shape[-1] - form.length) % step % form.length)
    starts = np.arange(0, x.shape[-1] - form.length + 1, step)
    segments = x[..., starts[:, None] + np.arange(form.length)]
    if isinstance(form.detrend, str):
        segments = _detrend(segments, type=form.detrend)
    elif callable(form.detrend):
        segments = form.detrend(segments)
    segments = segments * window
    if form.one_sided:
        return jnp.fft.rfft(segments.real, n=form.size)
    return jnp.fft.fft(segments, n=form.size)


def _extended(x: Any, boundary: str | None, count: int) -> Any:
    """x with `count` further values at both ends of its last axis."""
    if boundary is None or not count:
        return x
    if boundary in ("even", "odd") and count > x.shape[-1] - 1:
        raise ValueError(
            f"The extension length n ({count}) is too big. It must not exceed x.shape[axis]-1, which is "
            f"{x.shape[-1] - 1}"
        )
    first, last = x[..., :1], x[..., -1:]
    before, after = jnp.flip(x[..., 1 : count + 1], -1), jnp.flip(x[..., -count - 1 : -1], -1)
    if boundary == "zeros":
        before = after = jnp.zeros((*x.shape[:-1], count), x.dtype)
    elif boundary == "constant":
        before, after = jnp.repeat(first, count, -1), jnp.repeat(last, count, -1)
    elif boundary == "odd":
        before, after = 2 * first - before, 2 * last - after
    return jnp.concatenate([before, x, after], -1)


@compound(static=("average",))
def _averaged(power: Any, average: str) -> Any:
    """Over the last axis, of the segments."""
    if power.ndim < 2 or not power.size:
        return power
    count = power.shape[-1]
    if average == "mean" or count == 1:
        return power.mean(-1)
    even = np.arange(2.0, count, 2)
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if jnp.iscomplexobj(power):
        return lax.complex(jnp.median(power.real, -1), jnp.median(power.imag, -1)) / bias
    return jnp.median(power, -1) / bias


@compound(static=("length", "overlap", "size", "one_sided", "boundary", "place"))
def _inverse(
    z: Any,
    window: Any,
    fs: Any,
    length: int,
    overlap: int,
    size: int,
    one_sided: bool,
    boundary: bool,
    place: int,
) -> tuple[Any, Any]:
    """z: [..., segments, frequencies]. The segments, windowed, are added at their places, and divided by the sum of
    their windows."""
    segments = (jnp.fft.irfft if one_sided else jnp.fft.ifft)(z, n=size)[..., :length]
    if one_sided:
        window = window.real
    count, step = z.shape[-2], length - overlap
    places = np.arange(count)[:, None] * step + np.arange(length)
    total = (count - 1) * step + length
    sums = jnp.zeros((*z.shape[:-2], total), segments.dtype).at[..., places].add(segments * (window * window.sum()))
    weights = jnp.zeros(total, window.dtype).at[places].add(jnp.broadcast_to(window * window, places.shape))
    cut = length // 2 if boundary else 0
    sums, weights = sums[..., cut : total - cut], weights[cut : total - cut]
    x = sums / jnp.where(abs(weights) > 1e-10, weights, 1.0)
    x = jnp.moveaxis(x, -1, place)
    return jnp.arange(x.shape[0], dtype=dtypes.real_of(x.dtype)) / fs, x

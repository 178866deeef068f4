"""Convolutions and correlations of arrays of any rank. Source: scipy.signal, and jax.scipy.signal where they differ.

mode: "full" has all shifts at which the arrays overlap, "same" the middle of it, with the first array's shape, and
"valid" those shifts at which one array is inside of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import lax
from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...lax.movement import canonical_axis
from ...numpy.promotion import check_arraylike, index_tuple, promote_dtypes_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.errors import OperandError

_MODES = ("full", "same", "valid")


@compound(static=("mode", "method", "precision"))
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Value:
    """The sums of the products of in1 with in2 reversed and shifted.

    method: "direct" (also "auto") multiplies, "fft" goes by Fourier transforms. Integers become floats.

    >>> signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    >>> signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]), mode="same")
    Array([1. , 2.5, 4. ], dtype=float32)
    """
    x, y = _pair("convolve", in1, in2, mode)
    return _by(method, x, y, mode, precision)


@compound(static=("mode", "method", "precision"))
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Value:
    """The sums of the products of in1 with the conjugate of in2 shifted. Arguments as for `convolve`.

    >>> signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([0.5, 2. , 3.5, 3. , 0. ], dtype=float32)
    """
    x, y = _pair("correlate", in1, in2, mode)
    return _by(method, x, jnp.flip(jnp.conj(y)), mode, precision)


@compound(static=("mode", "boundary", "fillvalue", "precision"))
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Value:
    """`convolve` of matrices. `boundary` and `fillvalue` have no other values than these.

    >>> signal.convolve2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 1.0]]))
    Array([[1., 3., 2.],
           [3., 7., 4.]], dtype=float32)
    """
    return _direct(*_matrices("convolve2d", in1, in2, mode, boundary, fillvalue), mode, precision)


@compound(static=("mode", "boundary", "fillvalue", "precision"))
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Value:
    """The correlation of matrices. As in SciPy, "same" begins at a shift of half of in2's size, rounded down, and with
    "valid" the result is conjugated if in2 is the larger one.

    >>> signal.correlate2d(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, -1.0]]), mode="valid")
    Array([[-1.],
           [-1.]], dtype=float32)
    """
    x, y = _matrices("correlate2d", in1, in2, mode, boundary, fillvalue)
    found: Value
    if mode == "same":
        found = jnp.flip(_direct(jnp.flip(x), jnp.conj(y), mode, precision))
    else:
        found = _direct(x, jnp.flip(jnp.conj(y)), mode, precision)
    if mode == "valid" and x.shape != y.shape and all(m <= n for m, n in zip(x.shape, y.shape)):
        found = jnp.conj(found)
    return found


@compound(static=("mode", "axes"))
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None) -> Value:
    """`convolve` by Fourier transforms, along `axes` (all by default); other dimensions must be equal.

    >>> signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5])).round(3) + 0.0
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    x, y = _pair("fftconvolve", in1, in2, mode)
    along = range(x.ndim) if axes is None else [canonical_axis(a, x.ndim) for a in index_tuple("axes", axes)]
    if any(x.shape[d] != y.shape[d] for d in range(x.ndim) if d not in along):
        raise OperandError(
            f"fftconvolve of {x.aval.str_short()} and {y.aval.str_short()} along {tuple(along)}: mapped axes must "
            "have same shape",
            "convolve_axes",
        )
    return _by_transforms(x, y, mode, sorted(set(along)))


def _pair(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[Any, Any]:
    check_arraylike(name, in1, in2)
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}, got {mode!r}")
    x: Any
    y: Any
    x, y = promote_dtypes_inexact(in1, in2)
    if x.ndim != y.ndim:
        raise OperandError(
            f"{name} of {x.aval.str_short()} and {y.aval.str_short()}: in1 and in2 must have the same number of "
            "dimensions",
            "convolve_rank",
        )
    if not x.size or not y.size:
        raise OperandError(
            f"{name}: zero-size arrays not supported in convolutions, got shapes {x.shape} and {y.shape}",
            "convolve_size",
        )
    return x, y


def _matrices(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, boundary: str, fillvalue: float) -> tuple[Any, Any]:
    if boundary != "fill" or fillvalue != 0:
        raise UnsupportedError(f"{name}() only supports boundary='fill', fillvalue=0")
    x, y = _pair(name, in1, in2, mode)
    if x.ndim != 2:
        raise OperandError(f"{name}() only supports 2-dimensional inputs, not {x.aval.str_short()}", "matrices")
    return x, y


def _by(method: str, x: Any, y: Any, mode: str, precision: Any) -> Value:
    if method == "fft":
        return _by_transforms(x, y, mode, range(x.ndim))
    if method in ("direct", "auto"):
        return _direct(x, y, mode, precision)
    raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'")


def _larger_first(x: Any, y: Any, dimensions: Any) -> tuple[Any, Any]:
    """For "valid": the larger one comes first."""
    if all(x.shape[d] >= y.shape[d] for d in dimensions):
        return x, y
    if all(x.shape[d] <= y.shape[d] for d in dimensions):
        return y, x
    raise OperandError(
        f"For 'valid' mode, one input must be at least as large as the other in every dimension, not {x.shape} and "
        f"{y.shape}",
        "convolve_valid",
    )


def _direct(x: Any, y: Any, mode: str, precision: Any) -> Value:
    wanted = x.shape
    if mode == "valid":
        x, y = _larger_first(x, y, range(x.ndim))
        padding = [(0, 0)] * x.ndim
    else:
        skipped = [(n - 1) // 2 if mode == "same" else 0 for n in y.shape]
        """How many of the first shifts are left out."""
        sizes = wanted if mode == "same" else [m + n - 1 for m, n in zip(x.shape, y.shape)]
        if x.size < y.size:
            x, y = y, x
        before = [n - 1 - skip for n, skip in zip(y.shape, skipped)]
        padding = [(a, r - m + n - 1 - a) for a, r, m, n in zip(before, sizes, x.shape, y.shape)]
    found = lax.conv_general_dilated(
        x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, padding, precision=precision
    )
    return found[0, 0]


def _by_transforms(x: Value, y: Value, mode: str, axes: Any) -> Value:
    if mode == "valid":
        x, y = _larger_first(x, y, axes)
    full = [x.shape[d] + y.shape[d] - 1 for d in axes]
    wanted = {"full": full, "same": [x.shape[d] for d in axes], "valid": [x.shape[d] - y.shape[d] + 1 for d in axes]}
    if not axes:
        return x * y
    sizes = [_fast_size(n) for n in full]
    there, back = (jnp.fft.fftn, jnp.fft.ifftn) if jnp.iscomplexobj(x) else (jnp.fft.rfftn, jnp.fft.irfftn)
    found = back(there(x, sizes, axes) * there(y, sizes, axes), sizes, axes)
    starts, limits = [0] * x.ndim, list(found.shape)
    for d, n, r in zip(axes, full, wanted[mode], strict=True):
        starts[d] = (n - r) // 2
        limits[d] = starts[d] + r
    return lax.slice(found, starts, limits)


def _fast_size(least: int) -> int:
    """The least number from `least` on that has no prime factor above 5."""
    size = least
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 1

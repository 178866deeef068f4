"""Windows: weights of M samples that fall towards both ends. And the Bessel function of one of them.

Names and semantics follow NumPy, and jax.numpy where they differ. Most depend on a number that is known while tracing,
so they are constants, computed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..extend.primitive import Primitive
from ..hlo.sizes import as_size
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_numpy
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import ConcretizationTypeError, OperandError
from .promotion import check_arraylike, promote_inexact, to_dtype
from .unary_ufuncs import real_only


def sample_count(name: str, M: int) -> int:
    """M as an integer that is not negative."""
    try:
        count = as_size(M)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise OperandError(f"{name}: M must be an integer, not {M!r}", name) from None
    return max(count, 0)


def _window(name: str, M: int, weights: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Value:
    """The weights at places from -1 to 1."""
    count = sample_count(name, M)
    places = np.arange(1 - count, count, 2) / max(count - 1, 1)
    return array_from_numpy(np.asarray(weights(places) if count > 1 else np.ones(count), dtypes.default_float()))


def bartlett(M: int) -> Value:
    """A triangle of M weights, 0 at both ends: a window for a signal before `fft`. float32 (float64 with x64).

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda t: 1 - np.abs(t))


def blackman(M: int) -> Value:
    """M weights of two cosines, 0 at both ends (but for rounding). float32 (float64 with x64).

    >>> jnp.blackman(7)[2:5].round(2)
    Array([0.63, 1.  , 0.63], dtype=float32)
    """
    return _window("blackman", M, lambda t: 0.42 + 0.5 * np.cos(np.pi * t) + 0.08 * np.cos(2 * np.pi * t))


def hamming(M: int) -> Value:
    """M weights of a raised cosine, 0.08 at both ends. float32 (float64 with x64).

    >>> jnp.hamming(5).round(2)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _window("hamming", M, lambda t: 0.54 + 0.46 * np.cos(np.pi * t))


def hanning(M: int) -> Value:
    """M weights of a raised cosine, 0 at both ends. float32 (float64 with x64).

    >>> jnp.hanning(5).round(2)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("hanning", M, lambda t: 0.5 + 0.5 * np.cos(np.pi * t))


def kaiser(M: int, beta: ArrayLike) -> Value:
    """M weights ``i0(beta * sqrt(1 - t**2)) / i0(beta)`` for t from -1 to 1. A larger beta makes a narrower window.

    float32 (float64 with x64); beta is a number and may be traced, M is known while tracing.

    >>> jnp.kaiser(5, 2.0).round(2)
    Array([0.44, 0.83, 1.  , 0.83, 0.44], dtype=float32)
    """
    return _kaiser(beta, sample_count("kaiser", M))


@compound(static=("count",))
def _kaiser(beta: ArrayLike, count: int) -> Value:
    check_arraylike("kaiser", beta)
    target = dtypes.default_float()
    if count < 2:
        return lax.full((count,), 1, target)
    places = np.arange(1 - count, count, 2) / (count - 1)
    width = to_dtype(beta, target, False)
    return i0(width * np.asarray(np.sqrt(1 - places**2), target)) / i0(width)


@compound()
def i0(x: ArrayLike) -> Value:
    """The modified Bessel function of the first kind of order 0, for each element; integers become floats, not for
    complex numbers. `lax.bessel_i0e` is without overflow.

    >>> jnp.i0(jnp.array([0.0, 2.0])).round(4)
    Array([1.    , 2.2796], dtype=float32)
    """
    (value,) = promote_inexact("i0", x)
    found: Value = _i0.bind(real_only("i0", value))
    return found


_i0 = Primitive("i0")


@_i0.def_meaning
def _i0_meaning(x: Any) -> Any:
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


@_i0.def_jvp
def _i0_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The function of order 1."""
    (x,), (t,) = primals, tangents
    return i0(x), t * lax.exp(lax.abs(x)) * lax.bessel_i1e(x)

"""Discrete cosine transforms of type 2. Names and semantics follow scipy.fft, and jax.scipy.fft where they differ.

Of N values x, the transform is y[k] = 2 sum_j x[j] cos(pi k (2 j + 1) / (2 N)). It follows from the Fourier transform
V of the same values in another order (those at even places, then those at odd places backwards): y[k] is the real part
of 2 w_k V[k], and y[N - k] minus the imaginary one, with w_k = exp(-pi i k / (2 N)). J. Makhoul, "A fast cosine
transform in one and two dimensions" (1980).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...lax.movement import canonical_axis
from ...numpy.promotion import check_arraylike, index_tuple, promote_dtypes_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value


@compound(static=("type", "n", "axis", "norm"))
def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The cosine transform along one axis.

    type: 2, the only one; n: the transformed size; x is cut or padded with zeros to it; norm: "backward" (also None)
    divides the inverse by 2 N, "ortho" makes the transform orthogonal.

    >>> fft.dct(jnp.array([1.0, 1.0, 1.0, 1.0])).round(3) + 0.0
    Array([8., 0., 0., 0.], dtype=float32)
    """
    return _one("dct", _forward, x, type, n, axis, norm)


@compound(static=("type", "n", "axis", "norm"))
def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `dct`. Arguments as there.

    >>> fft.idct(fft.dct(jnp.array([1.0, 5.0, 2.0]))).round(3)
    Array([1., 5., 2.], dtype=float32)
    """
    return _one("idct", _backward, x, type, n, axis, norm)


@compound(static=("type", "s", "axes", "norm"))
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """The cosine transform along several axes: all, or the last ones if only the sizes `s` are given.

    >>> fft.dctn(jnp.ones((2, 2))).round(3) + 0.0
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _several("dctn", _forward, x, type, s, axes, norm)


@compound(static=("type", "s", "axes", "norm"))
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """The inverse of `dctn`. Arguments as there.

    >>> x = jnp.array([[1.0, 5.0], [2.0, 7.0]])
    >>> fft.idctn(fft.dctn(x)).round(3)
    Array([[1., 5.],
           [2., 7.]], dtype=float32)
    """
    return _several("idctn", _backward, x, type, s, axes, norm)


def _checked(name: str, x: ArrayLike, type: int, norm: str | None) -> Value:
    check_arraylike(name, x)
    if type != 2:
        raise UnsupportedError(f"{name}: only type 2 is implemented, not {type}")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f'{name}: norm={norm!r} is not implemented: it is "backward" or "ortho"')
    (value,) = promote_dtypes_inexact(x)
    # the Fourier transform takes no floats of 16 bits
    return value if value.aval.dtype.itemsize > 2 else lax.convert_element_type(value, np.float32)


def _one(
    name: str, method: Callable[..., Any], x: ArrayLike, type: int, n: int | None, axis: int, norm: str | None
) -> Value:
    value = _checked(name, x, type, norm)
    place = canonical_axis(axis, value.ndim)
    return _along(method, _resized(name, value, {place: value.shape[place] if n is None else n}), place, norm)


def _several(name: str, method: Callable[..., Any], x: ArrayLike, type: int, s: Any, axes: Any, norm: Any) -> Value:
    value = _checked(name, x, type, norm)
    rank = value.ndim
    sizes = None if s is None else index_tuple("s", s)
    if axes is None:
        count = rank if sizes is None else len(sizes)
        if count > rank:
            raise ValueError(f"s must have at most x.ndim ({rank}) elements, got {count}")
        places: tuple[int, ...] = tuple(range(rank - count, rank))
    else:
        places = tuple([canonical_axis(a, rank) for a in index_tuple("axes", axes)])
    if sizes is not None and len(sizes) != len(places):
        raise ValueError(f"s and axes have different lengths: {sizes} and {places}")
    if sizes is not None:
        value = _resized(name, value, dict(zip(places, sizes, strict=True)))
    for place in places:
        value = _along(method, value, place, norm)
    return value


def _resized(name: str, x: Any, sizes: dict[int, int]) -> Any:
    """x cut or padded with zeros along the given axes."""
    wanted = [operator.index(sizes.get(d, size)) for d, size in enumerate(x.shape)]
    if any(size <= 0 for size in wanted):
        raise ValueError(f"{name}: cannot transform sizes {wanted}: they must be positive")
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, b - a, 0) for a, b in zip(x.shape, wanted)])


def _along(method: Callable[..., Any], x: Any, axis: int, norm: str | None) -> Value:
    x = jnp.moveaxis(x, axis, -1)
    found = lax.complex(method(x.real, norm), method(x.imag, norm)) if jnp.iscomplexobj(x) else method(x, norm)
    return jnp.moveaxis(found, -1, axis)


def _turns(size: int, count: int, dtype: Any) -> Any:
    """w_k for k < count."""
    angles = jnp.arange(count, dtype=dtype) * (math.pi / (2 * size))
    return lax.complex(jnp.cos(angles), -jnp.sin(angles))


def _forward(x: Any, norm: str | None) -> Any:
    size = x.shape[-1]
    turned = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1)
    spectrum = jnp.fft.rfft(turned)
    found = 2 * spectrum * _turns(size, size // 2 + 1, spectrum.real.dtype)
    y = jnp.concatenate([found.real, -jnp.flip(found.imag[..., 1 : (size + 1) // 2], -1)], -1)
    return y * _orthogonal(size, y.dtype) if norm == "ortho" else y


def _backward(y: Any, norm: str | None) -> Any:
    size = y.shape[-1]
    y = y / _orthogonal(size, y.dtype) if norm == "ortho" else y
    half = size // 2 + 1
    first = y[..., :1]
    mirrored = jnp.concatenate([jnp.zeros_like(first), jnp.flip(y[..., size - half + 1 :], -1)], -1)
    spectrum = lax.complex(y[..., :half], -mirrored) * jnp.conj(_turns(size, half, y.dtype)) / 2
    turned = jnp.fft.irfft(spectrum, n=size)
    even, odd = turned[..., : (size + 1) // 2], jnp.flip(turned[..., (size + 1) // 2 :], -1)
    none, batch = jnp.zeros((), y.dtype), [(0, 0, 0)] * (y.ndim - 1)
    spread = [lax.pad(even, none, [*batch, (0, (size + 1) % 2, 1)]), lax.pad(odd, none, [*batch, (1, size % 2, 1)])]
    return spread[0] + spread[1] if odd.shape[-1] else even


def _orthogonal(size: int, dtype: Any) -> Any:
    """The factors that make the rows of the transform unit vectors."""
    return jnp.where(jnp.arange(size) == 0, math.sqrt(1 / (4 * size)), math.sqrt(1 / (2 * size))).astype(dtype)

"""Discrete Fourier transforms along any axes. Names and semantics follow NumPy, and jax.numpy.fft where they differ.

`s` (for one axis `n`) are the sizes that are transformed: axes are cut or padded with zeros to them. `norm` says which
direction divides by the number of values N: "backward" (also None) the inverse one, "forward" the other, "ortho" both,
by sqrt(N).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import lax
from ...lax.movement import canonical_axis
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .. import unary_ufuncs as ew
from ..array_manipulation import moveaxis, roll
from ..padding import pad
from ..promotion import ensure_arraylike, index_tuple, promote_dtypes_inexact

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_MOST = 3
"""How many dimensions HLO's fft transforms at once."""


@compound(static=("n", "axis", "norm"))
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The transform along one axis: `sum_j a[j] exp(-2 pi i j k / n)`. complex64 (complex128 of 64-bit data).

    n: the axis is cut or padded with zeros to this size. norm: "backward" (also None), "ortho" divides by sqrt(n),
    "forward" by n.

    >>> jnp.fft.fft(jnp.array([1, 0, -1, 0]))
    Array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], dtype=complex64)
    """
    return _along_one("fft", a, n, axis, norm)


@compound(static=("n", "axis", "norm"))
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `fft`: divided by n. Complex. Arguments: see `fft`.

    >>> jnp.fft.ifft(jnp.array([0, 2, 0, 2]))
    Array([ 1.+0.j,  0.+0.j, -1.+0.j,  0.+0.j], dtype=complex64)
    """
    return _along_one("ifft", a, n, axis, norm)


@compound(static=("n", "axis", "norm"))
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The transform of real numbers along one axis: the n // 2 + 1 frequencies that are not negative. Arguments: see
    `fft`.

    >>> jnp.fft.rfft(jnp.array([1, 0, -1, 0]))
    Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)
    """
    return _along_one("rfft", a, n, axis, norm)


@compound(static=("n", "axis", "norm"))
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `rfft`, with n real values, by default 2 (m - 1) from m frequencies: give n if it is odd.

    >>> jnp.fft.irfft(jnp.array([0, 2, 0]))
    Array([ 1.,  0., -1.,  0.], dtype=float32)
    >>> jnp.fft.irfft(jnp.fft.rfft(jnp.array([1, 2, 3])), n=3).round(3)
    Array([1., 2., 3.], dtype=float32)
    """
    return _along_one("irfft", a, n, axis, norm)


@compound(static=("n", "axis", "norm"))
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The transform of a signal with Hermitian symmetry, from one half of it: n real values, by default 2 (m - 1).

    >>> jnp.fft.hfft(jnp.array([1, 1j, 0]))
    Array([ 1.,  3.,  1., -1.], dtype=float32)
    """
    return _along_one("irfft", ew.conj(_checked("hfft", a)), n, axis, _opposite(norm), "hfft")


@compound(static=("n", "axis", "norm"))
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `hfft`: one half of the signal with the given real frequencies, n // 2 + 1 complex values.

    >>> jnp.fft.ihfft(jnp.array([1, 3, 1, -1]))
    Array([1.-0.j, 0.+1.j, 0.-0.j], dtype=complex64)
    """
    return ew.conj(_along_one("rfft", _checked("ihfft", a), n, axis, _opposite(norm), "ihfft"))


@compound(static=("s", "axes", "norm"))
def fft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    """`fftn` of two axes, by default the last ones. Complex.

    >>> jnp.fft.fft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("fft", a, s, _two("fft2", axes), norm)


@compound(static=("s", "axes", "norm"))
def ifft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    """The inverse of `fft2`. Complex.

    >>> jnp.fft.ifft2(jnp.array([[4, 0], [0, 0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transform("ifft", a, s, _two("ifft2", axes), norm)


@compound(static=("s", "axes", "norm"))
def rfft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    """`rfftn` of two axes, by default the last ones: [..., m, n // 2 + 1].

    >>> jnp.fft.rfft2(jnp.ones((4, 6))).shape
    (4, 4)
    """
    return _transform("rfft", a, s, _two("rfft2", axes), norm)


@compound(static=("s", "axes", "norm"))
def irfft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Value:
    """The inverse of `rfft2`. Without `s`, the last axis gets 2 (m - 1) values from m frequencies.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.fft.irfft2(jnp.fft.rfft2(x))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _transform("irfft", a, s, _two("irfft2", axes), norm)


@compound(static=("s", "axes", "norm"))
def fftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Value:
    """The transform along several axes: all of them, or the last ones if only the sizes `s` are given. Complex.

    Axes are cut or padded with zeros to the sizes `s`. `norm`: see `fft`.

    >>> jnp.fft.fftn(jnp.ones((2, 2, 2))).shape
    (2, 2, 2)
    >>> jnp.fft.fftn(jnp.ones((2, 2)), axes=[0])
    Array([[2.+0.j, 2.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("fft", a, s, axes, norm)


@compound(static=("s", "axes", "norm"))
def ifftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Value:
    """The inverse of `fftn`: divided by the number of values. Complex.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.fft.ifftn(jnp.fft.fftn(x)).real
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _transform("ifft", a, s, axes, norm)


@compound(static=("s", "axes", "norm"))
def rfftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Value:
    """`fftn` of real numbers: along the last axis only the n // 2 + 1 frequencies that are not negative.

    >>> jnp.fft.rfftn(jnp.ones((2, 4, 6))).shape
    (2, 4, 4)
    """
    return _transform("rfft", a, s, axes, norm)


@compound(static=("s", "axes", "norm"))
def irfftn(a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Value:
    """The inverse of `rfftn`: real. Without `s`, the last axis gets 2 (m - 1) values from m frequencies.

    >>> jnp.fft.irfftn(jnp.fft.rfftn(jnp.ones((2, 4, 5))), s=(2, 4, 5)).shape
    (2, 4, 5)
    """
    return _transform("irfft", a, s, axes, norm)


def fftshift(x: ArrayLike, axes: Any = None) -> Value:
    """Frequency 0 moved from the front to the middle of the axes (all by default).

    >>> jnp.fft.fftshift(jnp.fft.fftfreq(5, d=0.2))
    Array([-2., -1.,  0.,  1.,  2.], dtype=float32)
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: Any = None) -> Value:
    """The inverse of `fftshift`: frequency 0 moved from the middle to the front.

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)


def _shifted(name: str, x: ArrayLike, axes: Any, direction: int) -> Value:
    """For an odd size n, the two directions move by n // 2 and by -(n // 2)."""
    value = _checked(name, x)
    shape = value.aval.shape
    places = range(len(shape)) if axes is None else [canonical_axis(a, len(shape)) for a in index_tuple("axes", axes)]
    if not places:
        return value
    return roll(value, tuple(direction * (shape[d] // 2) for d in places), tuple(places))


# ---- common parts


def _checked(name: str, a: ArrayLike) -> Value:
    return ensure_arraylike(f"fft.{name}", a)


def _opposite(norm: str | None) -> str:
    """The norm of the other direction."""
    _check_norm(norm)
    return _OPPOSITE[norm]


def _check_norm(norm: str | None) -> None:
    if norm not in _OPPOSITE:
        raise ValueError(f'Invalid norm value {norm!r}: it is "backward", "ortho" or "forward"')


def _two(name: str, axes: Any) -> tuple[int, ...]:
    given = index_tuple("axes", axes)
    if len(given) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}.\n  fft.fftn takes others.")
    return given


def _along_one(
    kind: str, a: ArrayLike, n: int | None, axis: Any, norm: str | None, name: str | None = None
) -> Value:
    if isinstance(axis, tuple | list):
        raise ValueError(
            f"jax.numpy.fft.{name or kind} does not support multiple axes. Please use jax.numpy.fft.{name or kind}n. "
            f"Got axis = {axis}."
        )
    return _transform(kind, a, None if n is None else (n,), (axis,), norm)


def _transform(kind: str, a: ArrayLike, s: Any, axes: Any, norm: str | None) -> Value:
    """The transform `kind`: fft, ifft, rfft or irfft."""
    _check_norm(norm)
    x = _checked(kind, a)
    rank = x.aval.ndim
    given = None if s is None else index_tuple("s", s)
    if given is not None and any(size <= 0 for size in given):
        raise ValueError(f"fft.{kind}: the sizes {given} must be positive")
    places = _places(kind, rank, given, axes)
    last = range(rank - len(places), rank)
    x = moveaxis(x, places, last)
    lengths = given if given is not None else x.aval.shape[rank - len(places) :]
    if kind == "irfft" and given is None and lengths:
        lengths = (*lengths[:-1], max(0, 2 * (lengths[-1] - 1)))
    if kind == "rfft":
        (x,) = promote_dtypes_inexact(x)
    x = _resized(x, kind, lengths)
    x = _nested(kind, x, lengths)
    factor = _factor(kind, norm, math.prod(lengths))
    return moveaxis(x if factor == 1 else x * factor, last, places)


def _places(kind: str, rank: int, s: tuple[int, ...] | None, axes: Any) -> tuple[int, ...]:
    """The transformed axes. ValueError if they repeat, or are not as many as the sizes."""
    if axes is None:
        count = rank if s is None else len(s)
        if count > rank:
            raise ValueError(f"fft.{kind}: {count} sizes {s} for an array of {rank} dimensions")
        return tuple(range(rank - count, rank))
    given = index_tuple("axes", axes)
    if s is not None and len(s) != len(given):
        raise ValueError(f"Shape and axes have different lengths: {s} and {given}")
    places = tuple(canonical_axis(axis, rank) for axis in given)
    if len(set(places)) != len(places):
        raise ValueError(f"jax.numpy.fft.{kind}n does not support repeated axes. Got axes {list(given)}.")
    return places


def _resized(x: Value, kind: str, lengths: Sequence[int]) -> Value:
    """The last axes cut, or padded with zeros, to the sizes for transforms of `lengths`."""
    wanted = list(lengths)
    if kind == "irfft" and wanted:
        wanted[-1] = wanted[-1] // 2 + 1 if wanted[-1] else 0
    shape = x.aval.shape
    lead = len(shape) - len(wanted)
    sizes = [*shape[:lead], *wanted]
    x = lax.slice(x, [0] * len(shape), [min(a, b) for a, b in zip(shape, sizes)])
    missing = [(0, b - a) for a, b in zip(x.aval.shape, sizes)]
    return pad(x, missing) if any(after for _, after in missing) else x


def _nested(kind: str, x: Value, lengths: Sequence[int]) -> Value:
    """The transform of the last axes, three at a time.

    The real side of rfft and irfft is the last axis: rfft begins there, irfft ends there; the others are complex.
    """
    if len(lengths) <= _MOST:
        return lax.fft(x, kind, lengths)
    rank, count = x.aval.ndim, len(lengths)
    others = range(rank - count, rank - _MOST)
    rest = {"rfft": "fft", "irfft": "ifft"}.get(kind, kind)
    if not kind.startswith("i"):
        x = lax.fft(x, kind, lengths[-_MOST:])
    x = moveaxis(x, others, range(rank - len(others), rank))
    x = _nested(rest, x, lengths[:-_MOST])
    x = moveaxis(x, range(rank - len(others), rank), others)
    if kind.startswith("i"):
        x = lax.fft(x, kind, lengths[-_MOST:])
    return x


def _factor(kind: str, norm: str | None, count: int) -> float:
    """The factor of `norm`, applied after HLO's transforms, which follow "backward"."""
    if norm in (None, "backward") or not count:
        return 1
    divided = 1 / count if norm == "forward" else 1 / math.sqrt(count)
    return 1 / divided if kind.startswith("i") else divided

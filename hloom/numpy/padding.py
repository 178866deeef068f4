"""`pad`: an array with more elements before and after it along each axis, for all modes of NumPy.

Names and semantics follow NumPy, and jax.numpy where they differ. Each axis is padded after the one before it, so that
corners are made of added elements. A mode is a function of the array, the axis, the two widths and its options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..hlo.sizes import is_symbolic, smaller
from ..tracer import dtypes
from ..tracer.arrays.array import rank_of
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from .array_creation import asarray, linspace
from .array_manipulation import flip
from .concrete_values import require_known
from .order_statistics import median
from .promotion import broadcast_to_shape, ensure_arraylike, to_dtype
from .reductions import max, mean, min
from .shape_base import apply_along_axis
from .unary_ufuncs import round

_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}
"""The options of each mode, with their defaults."""

Widths = tuple[tuple[int, int], ...]


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Value:
    """Elements added before and after along each axis.

    pad_width: how many: an integer, (before, after), one pair for each axis, or a dict of axes with integers or pairs.
    mode: the added elements:
        "constant": `constant_values`, by default 0. "empty": zeros, as no memory is without contents.
        "edge": the element at the edge. "linear_ramp": a ramp from it to `end_values`, by default 0.
        "maximum", "minimum", "mean", "median": of the `stat_length` elements nearest to the edge, by default all.
        "reflect": the mirror image, without the edge itself; "symmetric": with it. `reflect_type` "odd": turned about
        the edge's value, 2 * edge - image; else "even".
        "wrap": the array from its other end.
        function(vector, (before, after), axis, kwargs): called for each vector along each axis of the array padded by
        zeros; returns the vector. (In NumPy it changes the vector in place.)
    constant_values, end_values, stat_length: as pad_width, one value or one for each side and axis.

    >>> jnp.pad(jnp.array([1, 2, 3]), (2, 1), mode="reflect").tolist()
    [3, 2, 1, 2, 3, 2]
    """
    if mode == "constant" and kwargs.keys() <= _OPTIONS[mode].keys():
        return _with_constants(array, pad_width, **kwargs)
    x = ensure_arraylike("pad", array)
    widths = _widths(pad_width, x.aval.ndim)
    if callable(mode):
        return _by_function(_zeros_around(x, widths), widths, mode, kwargs)
    if mode not in _OPTIONS:
        known = ", ".join(_OPTIONS)
        raise UnsupportedError(f"Unimplemented padding mode '{mode}' for np.pad. It can be {known}, or a function")
    unknown = sorted(set(kwargs) - set(_OPTIONS[mode]))
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode '{mode}': {unknown}")
    options = {**_OPTIONS[mode], **kwargs}
    if mode == "empty":
        return _zeros_around(x, widths)
    for axis, pair in enumerate(widths):
        if not x.aval.shape[axis] and any(pair):
            raise ValueError(f"pad: axis {axis} is empty: only modes 'constant' and 'empty' extend it, not '{mode}'")
    if mode == "linear_ramp":
        return _ramps(x, _pairs("end_values", options["end_values"], x.aval.ndim), widths)
    if mode in _STATISTICS:
        return _statistics(x, widths, mode, _lengths(options["stat_length"], x.aval.ndim))
    return _copies(x, widths, mode, options.get("reflect_type", "even"))


# ---- arguments


def _widths(given: Any, rank: int) -> Widths:
    """One pair of integers for each axis."""
    require_known("pad: a width", given)
    if isinstance(given, dict):
        whole: list[Any] = [(0, 0)] * rank
        for axis, width in given.items():
            whole[axis] = tuple(np.broadcast_to(np.asarray(width), (2,)).tolist())
        given = whole if rank else 0
    array = np.asarray(given)
    if array.dtype.kind not in "iu" and not any(map(is_symbolic, array.flat)):
        raise OperandError(f"pad: widths must be integers, not {given!r}", "pad")
    try:
        pairs = np.broadcast_to(array, (rank, 2)).tolist()
    except ValueError:
        raise _unmatched("pad_width", array.shape, rank) from None
    if any(width < 0 for pair in pairs for width in pair):
        raise ValueError(f"pad: widths must not be negative: {given}")
    return tuple([(low, high) for low, high in pairs])


def _pairs(name: str, given: Any, rank: int) -> Value:
    """Values for each axis and side, [rank, 2]; they may be traced."""
    values = given if isinstance(given, ArrayBase) else asarray(given)
    shape = values.aval.shape
    if len(shape) > 2 or any(a not in (1, b) for a, b in zip(shape[::-1], (2, rank))):
        raise _unmatched(name, shape, rank)
    return broadcast_to_shape(values, (rank, 2))


def _unmatched(name: str, shape: tuple[int, ...], rank: int) -> ValueError:
    return ValueError(
        f"pad: {name} of shape {shape} does not fit {rank} axes: give one, (before, after), or a pair for each axis"
    )


def _lengths(given: Any, rank: int) -> Widths | None:
    if given is None:
        return None
    lengths = _widths(given, rank)
    if any(length < 1 for pair in lengths for length in pair):
        raise ValueError("stat_length of 0 yields no value for padding")
    return lengths


# ---- constants


@compound(static=("pad_width",), frequent=True)
def _with_constants(array: ArrayLike, pad_width: Any, constant_values: Any = 0) -> Value:
    x = ensure_arraylike("pad", array)
    return _constant(x, _widths(pad_width, x.aval.ndim), constant_values)


def _zeros_around(x: Value, widths: Widths) -> Value:
    return lax.pad(x, lax.full_like(x, 0, shape=()), [(low, high, 0) for low, high in widths])


def _constant(x: Value, widths: Widths, values: Any) -> Value:
    if rank_of(values) == 0:
        if not x.aval.weak_type:
            values = lax.convert_element_type(values, x.aval.dtype)
        else:
            values = to_dtype(values, x.aval.dtype, True)
        return lax.pad(x, values, [(low, high, 0) for low, high in widths])
    pairs = _pairs("constant_values", values, x.aval.ndim)
    for axis, pair in enumerate(widths):
        for side, width in enumerate(pair):
            config = [(0, 0, 0)] * x.aval.ndim
            config[axis] = (width, 0, 0) if side == 0 else (0, width, 0)
            x = lax.pad(x, to_dtype(_entry(pairs, axis, side), x.aval.dtype, x.aval.weak_type), config)
    return x


def _entry(pairs: Value, axis: int, side: int) -> Value:
    return lax.reshape(lax.slice(pairs, (axis, side), (axis + 1, side + 1)), ())


# ---- values made of the array


@compound(static=("widths",))
def _ramps(x: Value, ends: Value, widths: Widths) -> Value:
    for axis, (low, high) in enumerate(widths):
        size, parts = x.aval.shape[axis], [x]
        for side, width in enumerate((low, high)):
            if width:
                edge = lax.index_in_dim(x, 0 if side == 0 else size - 1, axis, False)
                end = _entry(ends, axis, side)
                if not dtypes.is_inexact(edge.aval.dtype):  # a ramp of integers is one of floats, cut
                    edge = to_dtype(edge, dtypes.default_float(), False)
                end = to_dtype(end, edge.aval.dtype, False)
                ramp = linspace(end, to_dtype(edge, edge.aval.dtype, False), width, False, False, x.aval.dtype, axis)
                ramp = to_dtype(ramp, x.aval.dtype, x.aval.weak_type)
                parts = [ramp, *parts] if side == 0 else [*parts, flip(ramp, axis)]
        x = lax.concatenate(parts, axis)
    return x


_STATISTICS: dict[str, Callable[..., Value]] = {"maximum": max, "mean": mean, "median": median, "minimum": min}


@compound(static=("widths", "mode", "lengths"))
def _statistics(x: Value, widths: Widths, mode: str, lengths: Widths | None) -> Value:
    for axis, (low, high) in enumerate(widths):
        size, parts = x.aval.shape[axis], [x]
        for side, width in enumerate((low, high)):
            length = size if lengths is None else lengths[axis][side]
            length = smaller(length, size)
            start = 0 if side == 0 else size - length
            found = _STATISTICS[mode](lax.slice_in_dim(x, start, start + length, 1, axis), axis=axis, keepdims=True)
            if dtypes.is_integer(x.aval.dtype) and dtypes.is_inexact(found.aval.dtype):
                found = round(found)
            found = to_dtype(found, x.aval.dtype, x.aval.weak_type)
            repeated = broadcast_to_shape(found, _with_size(x, axis, width))
            parts = [repeated, *parts] if side == 0 else [*parts, repeated]
        x = lax.concatenate(parts, axis)
    return x


@compound(static=("widths", "mode", "reflect_type"))
def _copies(x: Value, widths: Widths, mode: str, reflect_type: str) -> Value:
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', not {reflect_type!r}")
    for axis, (low, high) in enumerate(widths):
        if low or high:
            if mode == "wrap":
                x = _wrapped(x, axis, low, high)
            elif mode == "edge" or (mode == "reflect" and x.aval.shape[axis] == 1):
                x = _edges(x, axis, low, high)
            else:
                skipped, odd = int(mode == "reflect"), reflect_type == "odd"
                period = x.aval.shape[axis] - skipped
                x = _mirrored(x, axis, low, period, skipped, odd)
                if high:
                    x = flip(_mirrored(flip(x, axis), axis, high, period, skipped, odd), axis)
    return x


def _edges(x: Value, axis: int, low: int, high: int) -> Value:
    size = x.aval.shape[axis]
    first, last = lax.slice_in_dim(x, 0, 1, 1, axis), lax.slice_in_dim(x, size - 1, size, 1, axis)
    before, after = (broadcast_to_shape(e, _with_size(x, axis, n)) for e, n in ((first, low), (last, high)))
    return lax.concatenate([before, x, after], axis)


def _wrapped(x: Value, axis: int, low: int, high: int) -> Value:
    size = x.aval.shape[axis]
    before, after = low % size, high % size
    parts = [lax.slice_in_dim(x, size - before, size, 1, axis)] if before else []
    parts += [x] * (low // size + 1 + high // size)
    parts += [lax.slice_in_dim(x, 0, after, 1, axis)] if after else []
    return lax.concatenate(parts, axis)


def _mirrored(x: Value, axis: int, width: int, period: int, skipped: int, odd: bool) -> Value:
    """`width` elements put before the array: mirror images of at most `period` elements each.

    skipped: 1 if the edge is not part of its image.
    """
    while width:
        count = smaller(width, period)
        image = flip(lax.slice_in_dim(x, skipped, skipped + count, 1, axis), axis)
        if odd:
            edge = broadcast_to_shape(lax.slice_in_dim(x, 0, 1, 1, axis), image.aval.shape)
            image = lax.sub(lax.add(edge, edge), image)
        x = lax.concatenate([image, x], axis)
        width -= count
    return x


def _with_size(x: Value, axis: int, size: int) -> tuple[int, ...]:
    return (*x.aval.shape[:axis], size, *x.aval.shape[axis + 1 :])


def _by_function(x: Value, widths: Widths, function: Callable[..., Any], options: dict[str, Any]) -> Value:
    for axis, pair in enumerate(widths):
        x = apply_along_axis(function, axis, x, pair, axis, options)
    return x

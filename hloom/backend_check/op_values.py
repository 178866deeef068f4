"""Inputs for the cases of `op_table`, and how results are compared.

A kind of values is a function of (element type, dimensions, position of the operand, generator). Kinds with edge values
enumerate them so that the operands of an op together take all combinations, if the array is large enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..hlo import ElementType
from ..hlo.element_type import element_type_of

NDArray = np.ndarray[Any, Any]
Values = Callable[[ElementType, tuple[int, ...], int, np.random.Generator], NDArray]


def _float_info(dtype: Any) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _limits(element_type: ElementType) -> tuple[int, int]:
    info: Any = ml_dtypes.iinfo(element_type.dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def edges(element_type: ElementType) -> list[Any]:
    """Values at which implementations differ. Subnormal numbers are not among them: XLA flushes them to zero."""
    if element_type is ElementType.PRED:
        return [False, True]
    if element_type.is_integral:
        low, high = _limits(element_type)
        middle = [-1, -2, -7] if element_type.is_signed else [high // 2 + 1]
        found = [0, 1, 2, 3, 7, *middle, low, low + 1, high, high - 1]
        return [n for n in found if low <= n <= high]
    info = _float_info(element_type.real.dtype)
    if element_type is ElementType.F8E8M0FNU:
        return [1.0, 0.5, 2.0**-100, 2.0**100, float(info.max), math.nan]
    finite = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, float(info.eps), float(info.tiny), float(info.max), 4.25]
    return [*finite, *(-x for x in finite), math.inf, -math.inf, math.nan]


def _random(element_type: ElementType, count: int, rng: np.random.Generator) -> NDArray:
    if element_type is ElementType.PRED:
        return rng.integers(0, 2, count).astype(bool)
    if element_type.is_integral:
        low, high = _limits(element_type)
        if element_type.is_small:
            return rng.integers(low, high, count, np.int64, endpoint=True).astype(element_type.dtype)
        wide = rng.integers(low, high, count, element_type.dtype, endpoint=True)
        return np.where(rng.integers(0, 2, count), wide, wide % element_type.dtype.type(23))
    scale = rng.choice([1.0, 1.0, 10.0, 0.01], count)
    values: NDArray = rng.standard_normal(count) * scale
    if element_type.is_complex:
        values = values + 1j * rng.standard_normal(count) * scale
    if element_type is ElementType.F8E8M0FNU:
        values = np.exp2(np.round(8 * values))
    with np.errstate(all="ignore"):
        return values.astype(element_type.dtype)


def any_value(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """Edge values, then random ones."""
    count = math.prod(dimensions)
    values = _random(element_type, count, rng)
    if not element_type.is_complex:
        special = np.array(edges(element_type), element_type.dtype)
        index = np.arange(min(count, len(special) ** (position + 1)))
        values[: len(index)] = special[index // len(special) ** position % len(special)]
    return values.reshape(dimensions)


def finite(element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Random values of moderate size."""
    return _random(element_type, math.prod(dimensions), rng).reshape(dimensions)


def positive(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """Floats in [0.5, 1.5), so that sums and products do not cancel; complex ones near the real axis."""
    count = math.prod(dimensions)
    if not element_type.is_inexact:
        return finite(element_type, dimensions, position, rng)
    values = rng.uniform(0.5, 1.5, count)
    if element_type.is_complex:
        values = values + 1j * rng.uniform(-0.1, 0.1, count)
    return values.astype(element_type.dtype).reshape(dimensions)


def small_floats(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """Few different values, so that many are equal."""
    return (rng.integers(-4, 5, dimensions) / 4).astype(element_type.dtype)


def small_integer(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """-4 to 11, or 0 to 11 for unsigned types: exponents, or start indices, some of them out of bounds."""
    low = -4 if element_type.is_signed else 0
    return rng.integers(low, 12, dimensions).astype(element_type.dtype)


def shift_distance(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """From 0 to beyond the width, and negative ones, which count as large."""
    low = -2 if element_type.is_signed else 0
    return rng.integers(low, element_type.bit_width + 3, dimensions).astype(element_type.dtype)


def subnormal(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """Floats of either sign between the smallest subnormal number and a little above the smallest normal one."""
    info = _float_info(element_type.real.dtype)
    exponents = rng.uniform(np.log2(float(info.smallest_subnormal)), np.log2(float(info.tiny)) + 3, dimensions)
    values: NDArray = np.exp2(exponents) * rng.choice([-1.0, 1.0], dimensions)
    return values.astype(element_type.dtype)


def near_integer(
    element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: np.random.Generator
) -> NDArray:
    """Floats that integers of every width hold, and some that they do not: typical operands of conversions."""
    count = math.prod(dimensions)
    limits = [2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64)]
    beside = [s * x + d for x in limits for s in (1, -1) for d in (-1.5, -1, -0.5, 0, 0.5, 1)]
    special = np.array([*edges(element_type), *beside], np.float64)
    special = special[~(np.abs(special) > float(_float_info(element_type.real.dtype).max)) | np.isinf(special)]
    values: NDArray = rng.standard_normal(count) * rng.choice([1.0, 100.0, 1e4], count)
    values[: min(count, len(special))] = special[:count]
    return values.astype(element_type.dtype).reshape(dimensions)


def fixed(value: object) -> Values:
    """The kind with this value: a number for all elements, or an array."""

    def values(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
        return np.full(dims, value, t.dtype)

    return values


def ulp_distance(actual: NDArray, expected: NDArray) -> NDArray:
    """How many floats lie between two arrays of one floating-point type, element by element, as float64."""
    if actual.dtype == ml_dtypes.float4_e2m1fn:
        actual, expected = (a.astype(ml_dtypes.float8_e5m2) for a in (actual, expected))  # the sign in the highest bit
    signed = np.dtype(f"i{actual.dtype.itemsize}")
    keys = []
    for array in (actual, expected):
        bits = array.view(signed)
        keys.append(np.where(bits < 0, np.iinfo(signed).min - bits, bits).astype(np.float64))
    return np.abs(keys[0] - keys[1])


def errors_in_ulps(actual: NDArray, expected: NDArray, *, signed_zeros: bool = False) -> NDArray:
    """The error of each element: 0 where equal (NaN equals NaN), infinite where only one is NaN, else in ulps.

    Complex numbers: the distance in units of the larger component's ulp. Zeros of either sign are equal unless
    `signed_zeros`.
    """
    if not np.issubdtype(actual.dtype, np.inexact) and not element_type_of(actual.dtype).is_floating:
        return np.where(actual == expected, 0.0, np.inf)
    with np.errstate(all="ignore"):
        if element_type_of(actual.dtype).is_small:
            wide, wanted = actual.astype(np.float32), expected.astype(np.float32)
            same = (np.isnan(wide) & np.isnan(wanted)) | (
                (wide == wanted) & ((np.signbit(wide) == np.signbit(wanted)) | (not signed_zeros))
            )
            one_is_nan = np.isnan(wide) != np.isnan(wanted)
            return np.where(same, 0.0, np.where(one_is_nan, np.inf, np.maximum(ulp_distance(actual, expected), 1)))
        if actual.dtype.kind == "c":
            if not (np.isfinite(actual).all() and np.isfinite(expected).all()):
                parts = [
                    errors_in_ulps(getattr(actual, p).copy(), getattr(expected, p).copy()) for p in ("real", "imag")
                ]
                exceptional = np.maximum(*parts)
            else:
                exceptional = np.zeros(actual.shape)
            scale = np.maximum(np.abs(expected.real), np.abs(expected.imag))
            unit = np.maximum(np.spacing(scale), np.finfo(scale.dtype).tiny)
            distance = np.abs(actual.astype(np.complex128) - expected) / unit
            finite_elements = np.isfinite(actual) & np.isfinite(expected)
            return np.where(finite_elements, distance, exceptional)
        same = (np.isnan(actual) & np.isnan(expected)) | (actual == expected)
        if signed_zeros:
            same &= np.isnan(expected) | (np.signbit(actual) == np.signbit(expected))
        one_is_nan = np.isnan(actual) != np.isnan(expected)
        distance = np.where(one_is_nan, np.inf, np.maximum(ulp_distance(actual, expected), signed_zeros))
        return np.where(same, 0.0, distance)


def flush_subnormals(array: NDArray) -> NDArray:
    """The array with subnormal numbers replaced by zeros of their sign; f16, which is computed in f32, as it is.

    So are the few normal numbers up to four times the smallest one: an intermediate result of theirs may be subnormal.
    """
    if array.dtype.kind == "c":
        flushed = array.copy()
        flushed.real, flushed.imag = flush_subnormals(array.real), flush_subnormals(array.imag)
        return flushed
    if array.dtype not in (np.float32, np.float64, ml_dtypes.bfloat16):
        return array
    with np.errstate(all="ignore"):
        zeros = np.copysign(array.dtype.type(0), array)
        return np.where(np.abs(array) < 4 * _float_info(array.dtype).tiny, zeros, array)

"""Sets of data: a program is compiled once and runs with many. Set 0 is drawn with the program.

A set has a flavour: numbers of moderate size, those at which implementations differ, random bits, and so on. The number
of the set says which one, so that a program meets each; now and then a parameter has another than the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hloom.hlo.element_type import ElementType, element_type_of

from hloom.backend_check.op_values import any_value, edges, finite, small_integer

NDArray = np.ndarray[Any, Any]
Flavour = Callable[[ElementType, tuple[int, ...], int, np.random.Generator], NDArray]
ORDINARY = frozenset({"moderate", "whole"})
"""Flavours on which the library and JAX must agree: JAX takes subnormal numbers for zero, and has other formulas at the
ends of the range."""
OTHER_FLAVOUR = 0.2
"""How often a parameter has another flavour than its set."""


def _with_parts(make: Flavour) -> Flavour:
    """The flavour for complex types too: both parts have it."""

    def made(element: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
        if not element.is_complex:
            return make(element, dims, position, rng)
        both = np.empty(dims, element.dtype)
        both.real, both.imag = (make(element.real, dims, position, rng) for _ in range(2))
        return both

    return made


def _whole(element: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Few small whole numbers: sums and products are exact, and many are equal."""
    if element is ElementType.PRED:
        return np.asarray(rng.integers(0, 2, dims)).astype(bool)
    low, high = (-3, 5) if element.is_inexact or element.is_signed else (0, 7)
    return np.asarray(np.clip(rng.integers(low, high, dims), *_limits(element))).astype(element.dtype)


def _limits(element: ElementType) -> tuple[float, float]:
    return element.limits if element.is_integral else (-np.inf, np.inf)


def _odd(element: ElementType) -> NDArray:
    """The edge values of a real type."""
    with np.errstate(all="ignore"):  # some types have no NaN
        return np.array(edges(element), element.dtype)


def _special(element: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Numbers of moderate size, a fifth of them edge values."""
    values = np.asarray(finite(element, dims, position, rng))
    odd = _odd(element)
    return np.where(rng.random(dims) < 0.2, odd[rng.integers(len(odd), size=dims)], values)


def _equal(element: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """One edge value, or two, everywhere."""
    odd = _odd(element)
    two = odd[rng.integers(len(odd), size=int(rng.integers(1, 3)))]
    return np.asarray(two[rng.integers(len(two), size=dims)])


def _bits(element: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Random bits: any exponent, any NaN."""
    if element is ElementType.PRED or element.bit_width < 8:
        return np.asarray(finite(element, dims, position, rng))
    count = int(np.prod(dims, dtype=np.int64))
    return np.frombuffer(bytearray(rng.bytes(count * element.byte_width)), element.dtype).reshape(dims)


def _wide(element: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Floats of any size, subnormal ones among them."""
    if not element.is_inexact or element is ElementType.F8E8M0FNU:
        return np.asarray(any_value(element, dims, position, rng))
    info: Any = ml_dtypes.finfo(element.dtype)  # type: ignore[no-untyped-call]
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    size = np.exp2(rng.uniform(low, high, dims)) * rng.choice([-1, 1], dims)
    with np.errstate(all="ignore"):
        return np.asarray(size).astype(element.dtype)


FLAVOURS: dict[str, Flavour] = {
    "edges": _with_parts(any_value), "special": _with_parts(_special), "whole": _with_parts(_whole),
    "bits": _with_parts(_bits), "wide": _with_parts(_wide), "moderate": finite, "equal": _with_parts(_equal),
}  # fmt: skip
EXACT = ("whole", "whole and odd", "whole", "whole and ends")
"""Flavours of programs that are exact if the numbers are small and whole."""


def another(inputs: Sequence[NDArray], seed: int, number: int) -> tuple[frozenset[str], tuple[NDArray, ...]]:
    """The flavours and the arrays of a set, of the types of `inputs`. Scalar integers are mostly small: they are often
    indices and ends of loops."""
    rng = np.random.default_rng([seed, number])
    names = list(FLAVOURS)
    arrays, flavours = [], {names[number % len(names)]}
    for position, array in enumerate(inputs):
        element = element_type_of(array.dtype)
        flavour = names[int(rng.integers(len(names)))] if rng.random() < OTHER_FLAVOUR else names[number % len(names)]
        flavours.add(flavour)
        make = FLAVOURS[flavour]
        if element.is_integral and array.ndim == 0 and rng.random() < 0.9:
            make = small_integer
        arrays.append(np.asarray(make(element, array.shape, position % 2, rng)))
    return frozenset(flavours), tuple(arrays)


def another_exact(inputs: Sequence[NDArray], seed: int, number: int) -> tuple[NDArray, ...]:
    """The arrays of a set for a program that is exact on small whole numbers: such numbers, some NaN, infinities and
    -0.0, and in arrays of integers their ends."""
    rng = np.random.default_rng([seed, number])
    flavour = EXACT[number % len(EXACT)]
    arrays = []
    for array in inputs:
        element = element_type_of(array.dtype)
        if element.is_integral and array.ndim == 0:
            arrays.append(np.asarray(rng.integers(0 if not element.is_signed else -1, 10)).astype(array.dtype))
            continue
        made = _with_parts(_whole)(element, array.shape, 0, rng)
        chosen = rng.random(array.shape) < 0.15
        if flavour == "whole and odd" and element.is_floating and not element.is_small:
            odd = np.asarray([np.nan, np.inf, -np.inf, -0.0, -0.0]).astype(array.dtype)
            made = np.where(chosen, odd[rng.integers(len(odd), size=array.shape)], made)
        elif flavour == "whole and ends" and element.is_integral:
            ends = _odd(element)
            made = np.where(chosen, ends[rng.integers(len(ends), size=array.shape)], made)
        arrays.append(np.asarray(made))
    return tuple(arrays)


def normal(inputs: Sequence[NDArray], seed: int, number: int) -> tuple[NDArray, ...]:
    """Normal numbers, for programs that are differentiated: none of them is at a corner."""
    rng = np.random.default_rng([seed, number])
    return tuple(np.asarray(rng.standard_normal(a.shape)).astype(a.dtype) for a in inputs)

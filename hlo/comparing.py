"""How far two arrays are apart, in units in the last place and relative to the largest number; arrays for tests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .element_type import ElementType
from .shape import Shape, is_beyond_numpy
from .support.records import dataclass

NDArray = np.ndarray[Any, Any]
_FEW_ULPS = 4
_BITS: dict[int, np.dtype[Any]] = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences that `compare` found."""

    is_fine: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok' if self.is_fine else 'DIFFERS'}, {self.text}"


def compare(actual: NDArray, expected: NDArray, element: ElementType, tolerance: float | None = None) -> Difference:
    """Compare two arrays of the element type.

    Integers and booleans must be equal. Floats may differ by `tolerance` times the largest finite number of `expected`
    (by default the square root of the type's epsilon), or by a few units in the last place. Where one element is NaN or
    infinite, the other must be the same.
    """
    if actual.size == 0:
        return Difference(True, "no elements")
    if not element.is_inexact:
        count = int(np.count_nonzero(actual != expected))
        return Difference(count == 0, f"{count} of {actual.size} elements differ" if count else "equal")
    if element.is_complex:
        real = element.real.dtype
        actual, expected = (np.ascontiguousarray(a).reshape(-1).view(real) for a in (actual, expected))
    with np.errstate(invalid="ignore"):  # signalling NaN
        a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(e)
    both = np.isfinite(a) & finite
    wrong = ~both & ~((a == e) | (np.isnan(a) & np.isnan(e)))
    if wrong.any():
        return Difference(False, f"{np.count_nonzero(wrong)} of {a.size} numbers are NaN or infinite in one only")
    largest = float(np.max(np.abs(e[finite]), initial=0.0))
    with np.errstate(over="ignore"):  # two numbers that are far apart
        error = float(np.max(np.abs(a[both] - e[both]), initial=0.0))
    ulps = int(np.max(_ulps(actual, expected)[both], initial=0))
    epsilon = float(ml_dtypes.finfo(actual.dtype).eps)  # type: ignore[no-untyped-call]
    allowed = (epsilon**0.5 if tolerance is None else tolerance) * largest
    relative = f", {error / largest:.2g} of the largest number" if largest else ""
    text = "equal" if ulps == 0 else f"at most {ulps} ulps apart{relative}"
    return Difference(error <= allowed or ulps <= _FEW_ULPS, text)


def _ulps(a: NDArray, b: NDArray) -> NDArray:
    """How many numbers of the type lie between two numbers, by the order of their bits; +0 and -0 are one number."""
    width = a.dtype.itemsize
    lowest = -(1 << (8 * width - 1))

    def ordered(x: NDArray) -> NDArray:
        bits = np.ascontiguousarray(x).view(_BITS[width])
        places: NDArray = np.where(bits < 0, lowest - bits, bits).astype(np.int64)
        return places

    # The distance of two doubles of opposite sign may exceed 63 bits: unsigned arithmetic wraps to the right answer.
    x, y = ordered(a), ordered(b)
    distance: NDArray = np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)
    return distance


_LARGEST_RANDOM = 10


_SPECIAL = np.array([np.nan, 0.0, np.inf, -0.0, -np.inf, 1.0, -1.0])


def random_array(shape: Shape, generator: np.random.Generator, special: float = 0.0) -> NDArray:
    """Normal floats and complex numbers, small integers of both signs, booleans. `special`: the fraction of the floats
    that are NaN, infinities, zeros of both signs, 1 and -1, cyclically. MemoryError if there is not enough."""
    if is_beyond_numpy(shape):
        raise MemoryError(f"no memory holds {shape}")
    element = shape.element
    if element is ElementType.PRED:
        return generator.integers(0, 2, shape.dimensions).astype(np.bool_)
    if element.is_complex:
        real, imaginary = generator.standard_normal((2, *shape.dimensions))
        return np.asarray(real + 1j * imaginary).astype(element.dtype)
    if element.is_floating:
        values = np.asarray(generator.standard_normal(shape.dimensions))
        if special:
            places = np.arange(values.size).reshape(values.shape) + generator.integers(len(_SPECIAL))
            chosen = generator.random(shape.dimensions) < special
            values = np.where(chosen, _SPECIAL[places % len(_SPECIAL)], values)
        with np.errstate(all="ignore"):  # some types have no NaN
            return values.astype(element.dtype)
    largest = min(_LARGEST_RANDOM, (1 << (element.bit_width - element.is_signed)) - 1)
    lowest = -largest if element.is_signed else 0
    return np.asarray(generator.integers(lowest, largest + 1, shape.dimensions)).astype(element.dtype)

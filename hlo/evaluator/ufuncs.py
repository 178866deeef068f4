"""Ops that are one NumPy ufunc, or behave as one: reductions combine elements with them.

A ufunc's `reduce`, from a given initial value, and its `at` apply the ufunc itself, so they have the op's meaning.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..opcode import Opcode
from ..support.records import dataclass
from .table import NDArray

_BITS = {width: np.dtype(f"u{width}") for width in (2, 4, 8)}


@dataclass(frozen=True, slots=True)
class Extremum:
    """The larger or the smaller of two numbers; NaN if one is NaN; -0 < +0 (IEEE 754-2019 maximum and minimum).

    NumPy's ufunc `values` leaves the sign of a zero open. The larger one of some numbers is negative if all of them
    are, the smaller one if any of them is: `signs` combines the sign bits, and decides where the result is zero.

    Of two complex numbers: the first if its real part is in relation `precedes` to the other's, else the second.
    """

    values: np.ufunc
    signs: np.ufunc
    precedes: np.ufunc

    def __call__(self, x: NDArray, y: NDArray) -> NDArray:
        kind = x.dtype.kind
        if kind == "c":
            return np.where(self.precedes(x.real, y.real), x, y)
        result = np.asarray(self.values(x, y))
        if kind in "biu" or np.count_nonzero(result) == result.size:
            return result
        return _with_signs(result, self.signs(_bits(x), _bits(y)))

    def reduce(self, array: NDArray, *, axis: tuple[int, ...], dtype: np.dtype[Any], initial: Any) -> NDArray:
        """The extremum of `initial` and all elements along `axis`; not of complex numbers."""
        result = np.asarray(self.values.reduce(array, axis=axis, dtype=dtype, initial=initial))
        if dtype.kind in "biu" or np.count_nonzero(result) == result.size:
            return result
        return _with_signs(result, self.signs.reduce(_bits(array), axis=axis, initial=_bits(initial)))

    def at(self, array: NDArray, places: NDArray, elements: NDArray) -> None:
        """Combine each element with the element of `array`, of rank 1, at the index in `places`; not for complex
        numbers."""
        if array.dtype.kind in "biu":
            self.values.at(array, places, elements)
            return
        signs = _bits(array).copy()
        self.signs.at(signs, places, _bits(elements))
        self.values.at(array, places, elements)
        _with_signs(array, signs)


def _bits(x: NDArray) -> NDArray:
    return x.view(_BITS[x.dtype.itemsize])


def _with_signs(result: NDArray, signs: Any) -> NDArray:
    """`result` with the sign bits in `signs` on its zeros."""
    np.copysign(result, signs.view(result.dtype), out=result, where=np.logical_not(result))
    return result


MAXIMUM = Extremum(np.maximum, np.bitwise_and, np.greater_equal)
MINIMUM = Extremum(np.minimum, np.bitwise_or, np.less_equal)

Ufunc: TypeAlias = np.ufunc | Extremum

UFUNCS: dict[Opcode, Ufunc] = {}
"""The commutative ops that apply one of these to the unchanged operands. `elementwise.py` fills it."""

"""Literal: the immutable value of a constant."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .element_type import element_type_of
from .shape import Shape
from .support.shared_value import SharedValue


@lru_cache(maxsize=1024)
def _shape_of(dtype: np.dtype[Any], dimensions: tuple[int, ...]) -> Shape:
    return Shape.array(element_type_of(dtype), dimensions)


class Literal(SharedValue):
    """An array value compared and hashed by dtype, dimensions and bytes (so NaN equals NaN, and 0.0 is not -0.0)."""

    __slots__ = ("_hash", "array")

    array: np.ndarray[Any, Any]
    """The value: C-contiguous and read-only."""

    def __init__(self, value: ArrayLike, dtype: DTypeLike | None = None) -> None:
        array = np.array(value, dtype=dtype, order="C", copy=True)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        array.flags.writeable = False
        self.array = array
        self._hash: int | None = None

    @property
    def shape(self) -> Shape:
        """The HLO shape, in the default layout."""
        return _shape_of(self.array.dtype, self.array.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        a, b = self.array, other.array
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.array.dtype.str, self.array.shape, self.array.tobytes()))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Literal, (self.array,)  # the hash is another one in another process

    def __repr__(self) -> str:
        return f"Literal({self.array!r})"

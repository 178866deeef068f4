"""ShapedArray: the type of a value in a program (shape, dtype, weak type). Interned, so that caches key on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..hlo.element_type import element_type_of
from ..hlo.errors import ShapeError
from ..hlo.layout import row_major
from ..hlo.shape import Shape
from .errors import OperandError
from .extended import ExtendedDType
from .source import user_line


class ShapedArray:
    """Shape, dtype and weak type of an array. Each type has one instance: equal means identical.

    A weakly typed value comes from Python scalars and gives way to other dtypes in promotion; booleans never do.
    """

    __slots__ = ("dtype", "hlo", "is_extended", "shape", "storage", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    hlo: Shape
    """The HLO type, row-major; of the storage, if the dtype is extended."""
    is_extended: bool
    """True for dtypes that HLO lacks (`extended.py`)."""
    storage: ShapedArray
    """The type of the array that holds the elements: this type itself, unless its dtype is extended."""

    def __new__(cls, shape: tuple[int, ...], dtype: DTypeLike | ExtendedDType, weak_type: bool = False) -> ShapedArray:
        """The one instance of this type; UnsupportedElementTypeError for a dtype that HLO cannot hold."""
        key = (shape, dtype, weak_type)
        found = _INTERNED.get(key)
        return found if found is not None else _intern(key)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("ShapedArray is immutable")

    def __reduce__(self) -> tuple[object, ...]:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def with_weak_type(self, weak_type: bool) -> ShapedArray:
        """The same type, weak or not."""
        return self if weak_type is self.weak_type else ShapedArray(self.shape, self.dtype, weak_type)

    def str_short(self) -> str:
        """As JAX writes it in messages: ``float32[2,3]``."""
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"


_INTERNED: dict[tuple[Any, Any, bool], ShapedArray] = {}


def _intern(key: tuple[Any, Any, bool]) -> ShapedArray:
    if isinstance(key[1], ExtendedDType):
        return _intern_extended(tuple(map(int, key[0])), key[1])
    element_type = element_type_of(key[1])
    shape = tuple(map(int, key[0]))
    dtype, weak_type = element_type.dtype, bool(key[2]) and element_type.dtype != np.bool_
    canonical = (shape, dtype, weak_type)
    found = _INTERNED.get(canonical)
    if found is None:
        aval = object.__new__(ShapedArray)
        try:
            Shape.array(element_type, shape)  # the checks: no negative or too large dimension
        except ShapeError as error:
            raise OperandError(f"{error}\n  at {user_line()}") from None
        _fill(aval, shape, dtype, weak_type, Shape(element_type, shape, row_major(len(shape))), aval)
        found = _INTERNED.setdefault(canonical, aval)
    # `key` may spell the dtype in another way ("float32", np.float32): the next lookup need not come here.
    return _INTERNED.setdefault(key, found)


def _intern_extended(shape: tuple[int, ...], dtype: ExtendedDType) -> ShapedArray:
    """Values of extended dtypes are never weakly typed."""
    found = _INTERNED.get((shape, dtype, False))
    if found is not None:
        return found
    aval = object.__new__(ShapedArray)
    storage = ShapedArray((*shape, *dtype.storage_shape), dtype.storage_dtype)
    _fill(aval, shape, dtype, False, storage.hlo, storage)
    return _INTERNED.setdefault((shape, dtype, False), aval)


def _fill(
    aval: ShapedArray, shape: tuple[int, ...], dtype: Any, weak_type: bool, hlo: Shape, storage: ShapedArray
) -> None:
    for name, value in (
        ("shape", shape),
        ("dtype", dtype),
        ("weak_type", weak_type),
        ("hlo", hlo),
        ("is_extended", storage is not aval),
        ("storage", storage),
    ):
        object.__setattr__(aval, name, value)


def aval_of_shape(shape: Shape, weak_type: bool = False) -> ShapedArray:
    """The type of an HLO array of `shape`, layout aside."""
    return ShapedArray(shape.dimensions, shape.element.dtype, weak_type)

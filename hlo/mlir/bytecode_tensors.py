"""The elements of a `dense` attribute as the bytes that MLIR stores.

An element takes whole bytes, low byte first, and a complex number is its two parts. Booleans are packed, eight in a
byte. Where all elements are equal, one is stored. Source: MLIR's DenseIntOrFPElementsAttr (mlir/IR/BuiltinAttributes).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from .tree import Dense, IndexType, Tensor

_MOST_DIMENSIONS = 32
_MOST_BYTES = 1 << 48
"""Of a tensor whose elements are equal: more than any memory, and less than what NumPy can count."""


def dtype_of(element: Any) -> np.dtype[Any]:
    """The dtype of an array with elements of a type; UnsupportedError where there is none."""
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, ElementType):
        return element.dtype
    raise UnsupportedError(f"constants of type {element}")


def dense_of(type_: Any, blob: memoryview) -> Dense:
    """A dense attribute. Its array is in the memory of `blob`, if NumPy has the same representation.

    ValueError if the length of `blob` does not fit the type; UnsupportedError for a type that no array has.
    """
    if not isinstance(type_, Tensor):
        raise ValueError(f"a constant of type {type_}")
    dimensions = type_.dimensions
    if any(size < 0 for size in dimensions):
        raise ValueError(f"a constant with dimensions {list(dimensions)}")
    dtype = dtype_of(type_.element)
    count = prod(dimensions)
    if len(dimensions) > _MOST_DIMENSIONS or count * dtype.itemsize > _MOST_BYTES:
        raise UnsupportedError(f"a constant with dimensions {list(dimensions)}")
    if type_.element is ElementType.PRED:
        values = _booleans(count, blob)
    else:
        if len(blob) not in (count * dtype.itemsize, dtype.itemsize):
            raise ValueError(f"{len(blob)} bytes for {count} elements of {dtype.itemsize} bytes")
        values = _numbers(type_.element, dtype, blob)
    if values.size == count:
        return Dense(type_, values.reshape(dimensions))
    return Dense(type_, np.broadcast_to(values.reshape(()), dimensions))


def _numbers(element: Any, dtype: np.dtype[Any], blob: memoryview) -> np.ndarray[Any, Any]:
    raw = np.frombuffer(blob, np.uint8)
    if isinstance(element, ElementType) and element.bit_width < 8 and not element.is_floating:
        return (raw & (1 << element.bit_width) - 1).view(dtype)
    values = raw.view(dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype)
    return values if values.flags.aligned else values.copy()


def _booleans(count: int, blob: memoryview) -> np.ndarray[Any, Any]:
    """Booleans: one bit each, or one byte each from old writers. A single byte of ones says that all are true."""
    size, raw = len(blob), np.frombuffer(blob, np.uint8)
    if size == 1 and raw[0] == _TRUE:
        return np.ones(1, np.bool_)
    if size == -(-count // 8) and size != count:
        return np.unpackbits(raw, count=count, bitorder="little").view(np.bool_)
    if size in (count, 1):
        return raw != 0  # type: ignore[no-any-return]
    raise ValueError(f"{size} bytes for {count} booleans")


_TRUE = 0xFF


def blob_of(dense: Dense) -> bytes | memoryview:
    """The bytes of a dense attribute, on the memory of the array where they are the same."""
    array, element = dense.array, dense.type.element
    is_equal = array.size > 1 and _all_equal(array)
    values = array[(slice(0, 1),) * array.ndim].reshape(1) if is_equal else np.ascontiguousarray(array).reshape(-1)
    if element is ElementType.PRED:
        if is_equal:
            return bytes((_TRUE if values[0] else 0,))
        return np.packbits(values, bitorder="little").tobytes()
    raw = values.view(np.uint8)
    if isinstance(element, ElementType) and element.bit_width < 8 and not element.is_floating:
        raw = raw & np.uint8((1 << element.bit_width) - 1)
    return np.ascontiguousarray(raw).data


def _all_equal(array: np.ndarray[Any, Any]) -> bool:
    if not any(array.strides):
        return True
    flat = np.ascontiguousarray(array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, flat.itemsize)
    return bool((raw[1] == raw[0]).all() and (raw == raw[0]).all())

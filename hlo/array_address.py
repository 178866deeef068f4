"""Where the elements of a NumPy array are. It imports nothing else of the library: a program that was compiled ahead of
time needs little more."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

NDArray = np.ndarray[Any, Any]


def address_of(array: NDArray) -> int:
    """The address of the array's first element.

    NumPy's documented ways (`ctypes.data`, `__array_interface__`) take over a microsecond, which is a third of a call.
    The data pointer is the first field after the object's head (PyArrayObject_fields, a part of NumPy's ABI).
    """
    return DATA_POINTERS[id(array) >> WORD_SHIFT]  # type: ignore[no-any-return]


_WORD = ctypes.sizeof(ctypes.c_size_t)
WORD_SHIFT = _WORD.bit_length() - 1
DATA_POINTERS: Any = (ctypes.c_size_t * (sys.maxsize // _WORD)).from_address(object.__basicsize__)
"""The memory of this process as words, from the end of an object's head at address 0 on: the word for an object's own
address, as a number of words, is the one after its head. To read it takes half as long as to make an object that points
there."""
_probe = np.zeros(3)
assert address_of(_probe) == _probe.ctypes.data, "NumPy's array object has another layout in this Python"

# Further fields of PyArrayObject_fields: the pointer to the data; the rank, an int; pointers to the dimensions, the
# strides, the base, the dtype; flags, an int.
ARRAY_DATA = object.__basicsize__
ARRAY_RANK, ARRAY_DIMENSIONS, ARRAY_BASE, ARRAY_DTYPE, ARRAY_FLAGS = (ARRAY_DATA + _WORD * k for k in (1, 2, 4, 5, 6))
"""Where an array object has these fields."""


def _has_fields() -> bool:
    array = np.zeros((5, 3), np.float32)
    start = id(array)
    rank = ctypes.c_int.from_address(start + ARRAY_RANK).value
    dtype = ctypes.c_size_t.from_address(start + ARRAY_DTYPE).value
    flags = ctypes.c_int.from_address(start + ARRAY_FLAGS).value
    if (rank, dtype, flags) != (2, id(array.dtype), array.flags.num):
        return False
    dimensions = ctypes.c_size_t.from_address(start + ARRAY_DIMENSIONS).value
    if tuple((ctypes.c_ssize_t * 2).from_address(dimensions)) != array.shape:
        return False
    part = array[1:]
    bases = [ctypes.c_size_t.from_address(id(each) + ARRAY_BASE).value for each in (array, part)]
    if bases != [0, id(array)] or part.base is not array:
        return False
    scalar = np.float32(1.5)
    return ctypes.c_float.from_address(id(scalar) + ARRAY_DATA).value == scalar


HAS_FIELDS = _has_fields()
"""Whether NumPy's array objects have these fields, and its scalars their value right after the head, so that machine
code may read them."""

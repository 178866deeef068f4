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
    return WORDS[(id(array) + DATA_OFFSET) // WORD]  # type: ignore[no-any-return]


WORD = ctypes.sizeof(ctypes.c_size_t)
WORDS: Any = (ctypes.c_size_t * (sys.maxsize // WORD)).from_address(0)
"""The memory of this process as words. To read one takes half as long as to make an object that points to it."""
DATA_OFFSET = object.__basicsize__
_probe = np.zeros(3)
assert address_of(_probe) == _probe.ctypes.data, "NumPy's array object has another layout in this Python"

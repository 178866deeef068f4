"""Arguments and results for a generated test: numbers that C++ can make in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np

from .headers import Slot

NDArray = np.ndarray[Any, Any]

MOST_COMPARED = 256
"""The first elements of each result that the generated test compares."""


def sample_argument(slot: Slot, number: int) -> NDArray:
    """Element i is ((7 i + 3 number) mod 17 - 8) / 8 for floating-point types, and (7 i + 3 number) mod 5 for others;
    complex numbers have it as their real part."""
    element = slot.shape.element
    steps = 7 * np.arange(slot.count) + 3 * number
    values: NDArray
    if element.is_inexact:
        values = (steps % 17 - 8) / 8
    elif element.value == "pred":
        values = steps % 5 > 1
    else:
        values = steps % 5
    return np.asarray(values).astype(element.dtype).reshape(slot.shape.dimensions)

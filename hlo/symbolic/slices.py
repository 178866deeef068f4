"""Slices ``x[start:stop:step]`` of dimensions of symbolic sizes, or with symbolic bounds."""

from __future__ import annotations

from typing import Any

from ..errors import InconclusiveDimensionOperation
from .expressions import Size, max_of, min_of


def positions(item: slice, size: Size) -> tuple[Size, Size, Size]:
    """The first index, how many there are, and the step of a slice of a dimension, as `slice.indices` counts them.

    ValueError for a step of 0. InconclusiveDimensionOperation if it is not known whether the step, or a bound, is
    negative.
    """
    step = 1 if item.step is None else item.step
    if _is(lambda: step == 0, "step", step, "> 0 or < 0"):
        raise ValueError("slice step cannot be zero")
    forward = _is(lambda: step > 0, "step", step, "> 0 or < 0")

    def bound(given: Any, name: str) -> Size:
        if _is(lambda: given >= 0, name, given, ">= 0"):
            return min_of(size if forward else size - 1, given)
        return max_of(0 if forward else -1, size + given)

    first = (0 if forward else size - 1) if item.start is None else bound(item.start, "start")
    end = (size if forward else -1) if item.stop is None else bound(item.stop, "stop")
    gap, distance = (step, end - first) if forward else (-step, first - end)
    return first, max_of(0, distance + gap - 1) // gap, step


def _is(test: Any, name: str, value: Size, wanted: str) -> bool:
    try:
        return bool(test())
    except InconclusiveDimensionOperation as error:
        raise InconclusiveDimensionOperation(
            f"In slice with non-constant elements the {name} ({value}) must be resolved statically if it is {wanted}.\n"
            f"Details: {error}"
        ) from None

"""Objects that a copy is not worth making of: nothing changes them, or they are known by their identity."""

from __future__ import annotations

from typing import Any, Self


class SharedValue:
    """`copy.copy` and `copy.deepcopy` return the object itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

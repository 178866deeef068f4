"""A dictionary of things that are known from earlier modules, within a limit of memory."""

from __future__ import annotations

from typing import TypeVar

from .memory_pressure import on_pressure

K = TypeVar("K")
V = TypeVar("V")


class Kept(dict[K, V]):
    """What is known, of a module of the library. It is emptied when the weights of its entries together exceed a
    limit, and when memory is short."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._weight = most, 0
        on_pressure(self.clear)

    def keep(self, key: K, value: V, weight: int = 1) -> V:
        """Add an entry; gives its value."""
        if self._weight + weight > self._most:
            self.clear()
        self[key] = value
        self._weight += weight
        return value

    def clear(self) -> None:
        super().clear()
        self._weight = 0

"""Values in disjoint sets, which are united (union-find)."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class DisjointSets(Generic[T]):
    """Each value is in a set of its own until it is united with others."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def find(self, value: T) -> T:
        """The value that stands for all of its set."""
        while (parent := self._parent.get(value, value)) != value:
            self._parent[value] = value = self._parent.get(parent, parent)
        return value

    def unite(self, a: T, b: T) -> None:
        """Make one set of two; what stands for the set of `a` stands for it."""
        first, second = self.find(a), self.find(b)
        if first != second:
            self._parent[second] = first

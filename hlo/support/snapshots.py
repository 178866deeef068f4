"""Lists of collections to which other threads may add entries while they are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def snapshot(entries: Iterable[T]) -> list[T]:
    """The entries of a dictionary, a set or their weak kinds at one moment.

    Only weak sets and dictionaries need this with the GIL: Python code walks them, so another thread may come between.
    """
    while True:
        try:
            return list(entries)
        except RuntimeError:  # the collection has changed while it was read
            pass

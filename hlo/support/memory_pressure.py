"""The response when the system has no more memory: free the memory that is kept only for speed, then try again.

A backend that keeps free memory says here how to give it back. All that allocates, NumPy's arrays included, tries a
second time if that gave something back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_releases: list[Callable[[], int | None]] = []


def on_pressure(release: Callable[[], int | None]) -> None:
    """`release` is called when memory is short. It frees as much as it can and returns the number of bytes, or None if
    that is unknown."""
    _releases.append(release)


def relieve() -> int:
    """Give back all memory that is kept for later use; returns the number of bytes."""
    return sum([release() or 0 for release in _releases])


def allocating(make: Callable[..., T], *args: Any, **options: Any) -> T:
    """`make(*args, **options)`, once more if there was no memory for it and some could be given back.

    `make` must have no effect when it raises MemoryError.
    """
    try:
        return make(*args, **options)
    except MemoryError:
        if not relieve():
            raise
    return make(*args, **options)

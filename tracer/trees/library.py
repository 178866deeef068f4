"""optree, which flattens trees: imported here only, so that trees are containers until the process ends.

optree registers a function with `atexit` that empties its tables. Functions that were registered before it run after
it, and to them a dictionary would be a leaf. All that the tables hold goes with the process anyway, so that function is
taken back. (`atexit` forgets functions that equal its argument; comparing with them shows which functions it has.)

If optree was imported before hloom, its function stays: nothing tells it from others then.
"""

from __future__ import annotations

import atexit
from types import BuiltinFunctionType
from typing import Any


class _Asking:
    """Equal to no function; remembers those it is compared with."""

    def __init__(self) -> None:
        self.met: list[Any] = []

    def __eq__(self, other: object) -> bool:
        self.met.append(other)
        return False

    __hash__ = None  # type: ignore[assignment]


def _registered() -> list[Any]:
    asking = _Asking()
    atexit.unregister(asking)  # type: ignore[arg-type]
    return asking.met


_before = _registered()
import optree  # noqa: E402

for _function in _registered():
    is_new = not any(_function is f for f in _before)
    if is_new and isinstance(_function, BuiltinFunctionType) and _function.__module__ is None:  # of optree, in C++
        atexit.unregister(_function)
del _before, is_new

__all__ = ["optree"]

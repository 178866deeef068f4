"""Interning: equal immutable objects are one object, as long as it has references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ..hlo.support.forking import Order, fork_lock

T = TypeVar("T")
_ALL: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_lock = fork_lock(Order.LEAF)


def interned(make: Callable[..., T], *key: Any) -> T:
    """`make(*key)`, or its earlier result for an equal key. 1, True and 1.0 are different keys."""
    full = (make, *key, *_types(key))
    found: T | None = _ALL.get(full)
    if found is None:
        made = make(*key)
        with _lock:
            found = _ALL.setdefault(full, made)
    return found


def _types(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([_types(k) if isinstance(k, tuple) else type(k) for k in key])

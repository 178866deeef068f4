"""Caches of traced and compiled programs: bounded, owned by functions, and emptied by `clear_caches`."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

from ..hlo.runners import CallSites
from ..hlo.support.memory_pressure import relieve
from ..hlo.support.snapshots import snapshot

V = TypeVar("V")
MAX_PROGRAMS = 4096
"""How many programs a function keeps, as in JAX."""


class _Emptied(Protocol):
    def clear(self) -> None: ...


_caches: weakref.WeakSet[Any] = weakref.WeakSet()
_clearing: list[Callable[[], None]] = []


def register_cache(cache: _Emptied) -> None:
    """`clear_caches` empties `cache`, as long as it lives."""
    _caches.add(cache)


def caches_of(kind: type[V]) -> list[V]:
    """The living caches of a class that `clear_caches` empties."""
    return [cache for cache in snapshot(_caches) if isinstance(cache, kind)]


def on_clear(clear: Callable[[], None]) -> None:
    """`clear_caches` calls `clear`."""
    _clearing.append(clear)


def clear_caches() -> None:
    """Drop the traced and compiled programs of all functions and of `run_hlo`; free the memory that is kept for later
    use, also the memory of machine code.

    >>> hloom.clear_caches()
    """
    for cache in snapshot(_caches):
        cache.clear()
    for clear in _clearing:
        clear()
    relieve()


class BoundedCache(Generic[V]):
    """A dictionary that drops the entries unused for longest: a quarter at once, and then it calls `dropped`."""

    def __init__(self, maxsize: int = MAX_PROGRAMS, dropped: Callable[[], None] | None = None) -> None:
        self._entries: OrderedDict[Hashable, V] = OrderedDict()
        self._maxsize = maxsize
        self._dropped = dropped

    def get(self, key: Hashable) -> V | None:
        """The value of `key`, which becomes the last to be dropped; None if there is none."""
        found = self._entries.get(key)
        if found is not None:
            try:
                self._entries.move_to_end(key)
            except KeyError:  # another thread has just dropped it
                self._entries[key] = found
        return found

    def __setitem__(self, key: Hashable, value: V) -> None:
        entries = self._entries
        entries[key] = value
        if len(entries) > self._maxsize:
            for old in self.keys()[: max(1, self._maxsize // 4)]:
                entries.pop(old, None)
            if self._dropped is not None:
                self._dropped()

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> list[Any]:
        """All keys."""
        return snapshot(self._entries)

    def values(self) -> list[V]:
        """All values."""
        return snapshot(self._entries.values())

    def clear(self) -> None:
        self._entries.clear()


class FastTable(dict[Any, dict[Any, V]]):
    """For each context, the programs that one look-up finds. The general way finds others."""

    __slots__ = ("call", "sites")
    call: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None
    """The result of a call that needs no look-up at all, or NotImplemented; None if there is none."""
    sites: CallSites | None

    def __init__(self) -> None:
        self.call = self.sites = None

    def __missing__(self, context: Any) -> dict[Any, V]:
        found: dict[Any, V] = {}
        self[context] = found
        return found

    def clear(self) -> None:
        """Forget all programs."""
        sites, self.call, self.sites = self.sites, None, None
        if sites is not None:
            sites.clear()
        super().clear()


_owned: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def belonging_to(function: Any, kind: Hashable, make: Callable[[], V]) -> V:
    """The one `kind` of cache that belongs to `function`; it lives as long as the function.

    Functions that cannot be hashed or referred to weakly own no cache: each call makes one.
    """
    try:
        owned = _owned.setdefault(function, {})
    except TypeError:
        return make()
    found: V | None = owned.get(kind)
    return owned.setdefault(kind, make()) if found is None else found

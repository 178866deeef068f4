"""Attributes that are computed when they are first read, and regular expressions that are compiled then.

`functools.cached_property` does this too, but before Python 3.12 it holds one lock for all instances while it computes.
A process that is forked at that moment would never get the lock. Here is no lock: two threads that read the attribute
at the same time may both compute it, and get equal values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast, overload

T = TypeVar("T")


class lazy_property(Generic[T]):
    """`@lazy_property` on a method without arguments: its result becomes an attribute of the instance.

    The class needs a `__dict__`; the value must not depend on anything that changes.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        # From now on the attribute is found in the instance, before this descriptor. The first value stays.
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value


class _LazyPattern:
    """Has the methods of a pattern: each is found at its first use."""

    def __init__(self, regex: str, flags: int) -> None:
        self._regex = regex
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._regex, self._flags), name)
        setattr(self, name, found)
        return found


def lazy_pattern(regex: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(regex, flags)`, but compiled at its first use. For the global names of a module that a program often
    imports without using them.

    Only methods of it may be used: it is no `re.Pattern`.
    """
    return cast("re.Pattern[str]", _LazyPattern(regex, flags))

"""Objects that live where the arguments of their methods are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from ...tracer.wrapping import wraps
from .func import colocated_python

__all__ = ["colocated_python_class", "wrap_class"]

_OWN = ("__init__", "__del__", "__reduce__", "__reduce_ex__")


def colocated_python_class(cls: type[Any]) -> type[Any]:
    """A class whose methods run where their arguments are: each is a function as `colocated_python` makes it.

    An object of `cls` is made when the first method is called.

    >>> from hloom.experimental.colocated_python import colocated_python_class
    >>> @colocated_python_class
    ... class Counter:
    ...     def __init__(self, start):
    ...         self.value = start
    ...     def add(self, x):
    ...         self.value = self.value + x
    ...         return self.value
    >>> counter = Counter(10)
    >>> counter.add(jnp.array(1)), counter.add(jnp.array(2))
    (Array(11, dtype=int32), Array(13, dtype=int32))
    """
    return wrap_class(cls)


def wrap_class(cls: type[Any], cls_sourceinfo: str | None = None) -> type[Any]:
    """As `colocated_python_class`; `cls_sourceinfo` is accepted, and not used."""

    make: Callable[..., Any] = cls

    class Wrapped:
        @wraps(cls.__init__)
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            instance = _Lazy(partial(make, *args, **kwargs))
            for name in dir(cls):
                method = getattr(cls, name)
                if inspect.isfunction(method) and name not in _OWN:
                    setattr(self, name, colocated_python(_method(instance, name, method)))

    Wrapped.__name__, Wrapped.__doc__ = cls.__name__, cls.__doc__
    return Wrapped


class _Lazy:
    """An object that is made when it is first asked for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._lock = make, Lock()
        self._found: list[Any] = []

    def get(self) -> Any:
        with self._lock:
            if not self._found:
                self._found.append(self._make())
        return self._found[0]


def _method(instance: _Lazy, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(instance.get(), name)(*args, **kwargs)

    return call

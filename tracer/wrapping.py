"""wraps: as functools.wraps, for any callable object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_KINDS = {"__module__": str, "__name__": str, "__qualname__": str, "__annotations__": dict, "__type_params__": tuple}
"""The types that a function accepts for these attributes."""


def wraps(fun: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator that gives a function the name, documentation and signature of `fun`.

    Objects that are called may have other things under these names: then the function keeps its own.
    """
    assigned = [a for a in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(fun, a, None), _KINDS.get(a, object))]
    wrapped: Callable[[F], F] = functools.wraps(fun, assigned=assigned)  # type: ignore[assignment]
    return wrapped


class SignatureOfFunction:
    """The attribute `__signature__` of objects that are called as the function `__wrapped__`: its signature.

    `inspect.getfullargspec` looks for it. The class itself has none.
    """

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is not None:
            try:
                return inspect.signature(instance.__wrapped__)
            except ValueError:  # a builtin may have none
                pass
        raise AttributeError("__signature__", name="__signature__", obj=owner)


class SignatureOfCall:
    """The attribute `__signature__` of objects with a `__wrapped__` that has other parameters: it shows the call's
    parameters."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__", name="__signature__", obj=owner)
        return inspect.signature(instance.__call__)


def name_of(fun: Any) -> str:
    """The name of a function; of an object without one, its class's name."""
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else type(fun).__name__

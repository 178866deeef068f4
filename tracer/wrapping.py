"""wraps: as functools.wraps, for any callable object."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
_KINDS: dict[str, Any] = {
    "__module__": str, "__name__": str, "__qualname__": str, "__annotations__": dict, "__annotate__": Callable | None,
    "__type_params__": tuple,
}  # fmt: skip
"""The types that a function accepts for these attributes."""

signature: Callable[[Callable[..., Any]], inspect.Signature] = inspect.signature
"""`inspect.signature` of a user's function, whose annotations may name what is defined later, or never."""
if sys.version_info >= (3, 14):
    from annotationlib import Format

    signature = functools.partial(inspect.signature, annotation_format=Format.FORWARDREF)


def wraps(fun: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator that gives a function the name, documentation and signature of `fun`.

    Objects that are called may have other things under these names: then the function keeps its own. An object's
    private attributes are not copied: they are how it works, and may be such that no pickle can hold them.
    """
    assigned = [a for a in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(fun, a, None), _KINDS.get(a, object))]

    def decorate(function: F) -> F:
        if isinstance(fun, FunctionType):
            return functools.update_wrapper(function, fun, assigned)  # type: ignore[return-value]
        functools.update_wrapper(function, fun, assigned, ())
        vars(function).update({name: value for name, value in getattr(fun, "__dict__", {}).items() if name[:1] != "_"})
        return function

    return decorate


class SignatureOfFunction:
    """The attribute `__signature__` of objects that are called as the function `__wrapped__`: its signature.

    `inspect.getfullargspec` looks for it. The class itself has none.
    """

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is not None:
            try:
                return signature(instance.__wrapped__)
            except ValueError:  # a builtin may have none
                pass
        raise AttributeError("__signature__", name="__signature__", obj=owner)


class _AnnotationsOfFunction:
    """The attribute `__annotations__` of a class, and of its objects the attribute of the function `__wrapped__`."""

    def __init__(self, own: dict[str, Any]) -> None:
        self._own = own

    def __get__(self, instance: Any, owner: type) -> dict[str, Any]:
        if instance is None:
            return self._own
        found: dict[str, Any] = instance.__wrapped__.__annotations__
        return found


def annotated_as_wrapped(cls: C) -> C:
    """The class, whose objects have the annotations of the function `__wrapped__`. A decorator.

    Since Python 3.14 `functools.update_wrapper` copies the function that computes annotations, so that those of names
    that are defined later can be asked for later; an object would show the annotations of its class.
    """
    cls.__annotations__ = _AnnotationsOfFunction(cls.__annotations__)  # type: ignore[assignment]
    return cls


class SignatureOfCall:
    """The attribute `__signature__` of objects with a `__wrapped__` that has other parameters: it shows the call's
    parameters."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__", name="__signature__", obj=owner)
        return signature(instance.__call__)


def name_of(fun: Any) -> str:
    """The name of a function; of an object without one, its class's name."""
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else type(fun).__name__

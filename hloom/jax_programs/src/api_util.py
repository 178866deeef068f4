"""jax._src.api_util: which arguments of a function are meant."""

import inspect as _inspect
import operator as _operator
from collections.abc import Iterable as _Iterable
from typing import Any as _Any

__all__ = ["_ensure_index", "_ensure_index_tuple", "_ensure_str_tuple", "check_callable", "infer_argnums_and_argnames"]


def check_callable(fun: _Any) -> None:
    """TypeError unless it is a function that returns its results."""
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if _inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def _ensure_index_tuple(x: _Any) -> tuple[int, ...]:
    """Integers, from one or several."""
    try:
        return (_operator.index(x),)
    except TypeError:
        return tuple(map(_operator.index, x))


def _ensure_index(x: _Any) -> int | tuple[int, ...]:
    """An integer, or a tuple of several."""
    found = _ensure_index_tuple(x)
    return found[0] if hasattr(x, "__index__") else found


def _ensure_str_tuple(x: str | _Iterable[str]) -> tuple[str, ...]:
    """Texts, from one or several; TypeError for anything else."""
    found = (x,) if isinstance(x, str) else tuple(x)
    for each in found:
        if not isinstance(each, str):
            raise TypeError(f"argument is not a string: {each}")
    return found


def infer_argnums_and_argnames(
    sig: _inspect.Signature, argnums: int | _Iterable[int] | None, argnames: str | _Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of the same arguments; those of the two that are not given follow from the signature."""
    numbers = () if argnums is None else _ensure_index_tuple(argnums)
    names = () if argnames is None else _ensure_str_tuple(argnames)
    both = [
        (i, name)
        for i, (name, parameter) in enumerate(sig.parameters.items())
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if argnums is None:
        numbers = tuple(i for i, name in both if name in names)
    elif argnames is None:
        names = tuple(name for i, name in both if i in numbers)
    return numbers, names

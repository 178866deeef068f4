"""Sizes of dimensions, which are numbers, or symbolic where a program is traced for many sizes (`symbolic/`)."""

from __future__ import annotations

from typing import Any, TypeGuard

from .support.loading import load


class SymbolicSize:
    """The base of `symbolic.expressions.Dim`. It is here so that a test for it needs no import of that."""

    __slots__ = ()


def is_symbolic(size: object) -> TypeGuard[SymbolicSize]:
    """Whether a size is an expression of variables."""
    return isinstance(size, SymbolicSize)


def larger(x: Any, y: Any) -> Any:
    """The larger of two sizes."""
    if type(x) is int and type(y) is int:
        return x if x >= y else y
    return load(".symbolic.expressions", __package__).max_of(x, y) if _any_symbolic(x, y) else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two sizes."""
    if type(x) is int and type(y) is int:
        return x if x <= y else y
    return load(".symbolic.expressions", __package__).min_of(x, y) if _any_symbolic(x, y) else min(x, y)


def _any_symbolic(*sizes: object) -> bool:
    return any(map(is_symbolic, sizes))

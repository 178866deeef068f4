"""Sizes of dimensions, which are numbers, or symbolic where a program is traced for many sizes (`symbolic/`)."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any


class SymbolicSize:
    """The base of `symbolic.expressions.Dim`. It is here so that a test for it needs no import of that."""

    __slots__ = ()

    def as_value(self, dtype: Any = None) -> Any:
        """The size as a scalar in the program that is being traced: of a dtype, or a weakly typed integer.
        UnsupportedError where nothing is traced."""
        raise NotImplementedError

    def max(self, other: Any) -> Any:
        """The larger of this size and another one."""
        raise NotImplementedError

    def min(self, other: Any) -> Any:
        """The smaller of this size and another one."""
        raise NotImplementedError

    def rmax(self, other: Any) -> Any:
        """The larger of another size and this one."""
        raise NotImplementedError

    def rmin(self, other: Any) -> Any:
        """The smaller of another size and this one."""
        raise NotImplementedError


def is_symbolic(size: object) -> bool:
    """Whether a size is an expression of variables."""
    return isinstance(size, SymbolicSize)


def as_size(size: Any) -> int:
    """A size as it is used in shapes: an integer of Python, or symbolic. TypeError for anything else."""
    return size if is_symbolic(size) else operator.index(size)


def larger(x: Any, y: Any) -> Any:
    """The larger of two sizes."""
    if type(x) is int and type(y) is int:
        return x if x >= y else y
    if is_symbolic(x):
        return x.max(y)
    return y.rmax(x) if is_symbolic(y) else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two sizes."""
    if type(x) is int and type(y) is int:
        return x if x <= y else y
    if is_symbolic(x):
        return x.min(y)
    return y.rmin(x) if is_symbolic(y) else min(x, y)


def exceeds(size: Any, limit: int) -> bool:
    """Whether a size is more than a limit that arrays in memory hardly reach; no symbolic one is."""
    return not is_symbolic(size) and size > limit


def largest(sizes: Iterable[Any]) -> Any:
    """The largest of the sizes, 0 if there are none; a symbolic one, if there is one."""
    found = tuple(sizes)
    symbolic = next(filter(is_symbolic, found), None)
    return max(found, default=0) if symbolic is None else symbolic

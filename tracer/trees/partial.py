"""Partial: a function with some of its arguments, which is a pytree, so that it can be an argument of jitted functions
and others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .nodes import register_pytree_node


class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree: the arguments are children, the function is part of the structure.

    So the function must be hashable, and functions that compare equal share compiled programs.

    >>> import hloom, hloom.numpy as jnp
    >>> scale = hloom.tree_util.Partial(jnp.multiply, jnp.array([1, 2]))
    >>> hloom.jit(lambda f, x: f(x))(scale, 10)
    Array([10, 20], dtype=int32)
    >>> hloom.tree.leaves(scale)
    [Array([1, 2], dtype=int32)]
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        # functools.partial would take another's arguments into its own. They stay where they are: the arguments in
        # `func` are structure, the new ones are leaves.
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **keywords)


class _Whole:
    """A functools.partial that functools.partial does not look into. Compared by its contents."""

    def __init__(self, held: functools.partial[Any]) -> None:
        self.held = held
        self.func, self.args, self.keywords = held.func, held.args, held.keywords

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.held(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return bool(self.held == (other.held if isinstance(other, _Whole) else other))

    def __hash__(self) -> int:
        return hash(self.held)

    def __repr__(self) -> str:
        return repr(self.held)


register_pytree_node(
    Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, parts: Partial(func, *parts[0], **parts[1])
)

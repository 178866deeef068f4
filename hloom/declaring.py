"""Functions that are all alike, each declared by its name, parameters and documentation, and made by a decorator.

    @unary(Opcode.EXP)
    def exp(x: ArrayLike) -> Value:
        'e**x.'

Editors and type checkers read the declaration; it has no body, and what runs is what the decorator made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def declared(declaration: F, function: Callable[..., Any]) -> F:
    """`function` with the name, home and documentation of its declaration, which has the same parameters."""
    functools.update_wrapper(function, declaration)
    del function.__wrapped__  # type: ignore[attr-defined]  # the declaration is no other form of the function
    code = function.__code__
    function.__code__ = code.replace(co_name=declaration.__name__, co_qualname=declaration.__qualname__)
    return cast(F, function)

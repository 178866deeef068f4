"""Functions that are all alike, each declared once, by a decorator that makes it.

    @unary(Opcode.EXP)
    def exp(x: ArrayLike) -> Value:
        'e**x.'

Editors and type checkers read the declaration. It has no body: calls run the function that the decorator made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def declared(declaration: F, function: Callable[..., Any]) -> F:
    """`function` with the name, home and documentation of its declaration, which has the same parameters.

    Its source text, as `inspect` finds it, is the declaration: `__wrapped__` does the same as the function, and begins
    on the declaration's line.
    """
    made = cast("FunctionType", function)
    code = made.__code__.replace(co_name=declaration.__name__, co_qualname=declaration.__qualname__)
    made.__code__ = code
    code = code.replace(co_firstlineno=declaration.__code__.co_firstlineno)
    shown = FunctionType(code, made.__globals__, None, made.__defaults__, made.__closure__)
    shown.__kwdefaults__ = made.__kwdefaults__
    functools.update_wrapper(shown, declaration)
    del shown.__wrapped__  # type: ignore[attr-defined]  # the declaration does nothing
    functools.update_wrapper(made, shown)
    return cast(F, function)

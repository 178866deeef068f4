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

from ..tracer.callers import declare_public

F = TypeVar("F", bound=Callable[..., Any])


def declared(declaration: F, function: Callable[..., Any]) -> F:
    """`function` with the name, home, documentation and annotations of its declaration, which has the same parameters.

    `inspect` shows the text of the declaration, to which `__wrapped__` leads.
    """
    functools.update_wrapper(function, declaration)
    declare_public(cast("FunctionType", function).__code__)
    return cast(F, function)

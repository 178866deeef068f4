"""Functions that are all alike, each declared once: by a decorator that makes it, or as one that is like another.

    @unary(Opcode.EXP)
    def exp(x: ArrayLike) -> Value:
        'e**x.'

    prod = like(sum, "prod", "The product of the elements.", add="multiply")

Editors and type checkers read the declaration, or the function that is given first. A declaration has no body: calls
run the function that the decorator made.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from ..tracer.compound import Compound

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


def like(first: F, name: str, doc: str | None = None, /, **others: str) -> F:
    """A function that is written as `first`, with other words for some: for the name of `first`, and for `others`, the
    names of globals, attributes and parameters, and texts. In the documentation, too, if `doc` is not given.

    Like `first` it is a function of its module, with its parameters, and compound if `first` is. `inspect` shows the
    text of `first`, to which `__wrapped__` leads.
    """
    if isinstance(first, Compound):
        return cast(F, first.with_function(like(first.__wrapped__, name, doc, **others)))
    plain = cast("FunctionType", first)
    code, others = plain.__code__, {plain.__name__: name, **others}
    known = {*code.co_varnames, *code.co_names, *code.co_consts}
    assert all(word in known or word in (plain.__doc__ or "") for word in others), f"{name}: no such word in {others}"
    code = code.replace(
        co_name=name,
        co_qualname=name,
        co_varnames=tuple([others.get(word, word) for word in code.co_varnames]),
        co_names=tuple([others.get(word, word) for word in code.co_names]),
        co_consts=tuple([others.get(value, value) if isinstance(value, str) else value for value in code.co_consts]),
    )
    made = FunctionType(code, plain.__globals__, name, plain.__defaults__, plain.__closure__)
    if doc is None:
        doc = plain.__doc__ or ""
        for word, other in others.items():
            doc = doc.replace(word, other)
    made.__kwdefaults__, made.__doc__ = plain.__kwdefaults__, doc
    made.__annotations__ = {others.get(word, word): kind for word, kind in plain.__annotations__.items()}
    if code.co_varnames != plain.__code__.co_varnames:
        made.__signature__ = inspect.signature(made)  # type: ignore[attr-defined]  # else that of `__wrapped__`
    made.__wrapped__ = plain  # type: ignore[attr-defined]
    return cast(F, made)

"""Calls of jitted functions that are stepped while a program runs: `hloom debug`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tracer.jit import CALLS
from ...tracer.settings.user_context import make_user_context
from ...tracer.wrapping import name_of

Step = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

_block = make_user_context(0)
"""The block whose calls are stepped; 0 outside of blocks, and in a step. Calls have fast ways for each value, so that
they are asked for in each block, and others are as ever."""
_numbers = itertools.count(1)


@contextmanager
def stepped_calls(step: Step, function: str | None = None) -> Iterator[None]:
    """Within the block, each call of a jitted function in this thread is `step(function, args, kwargs)`. function: only
    of the one with this name. A call in a function that is traced, or in a step, is a part of it."""
    number = next(_numbers)

    def call(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _block.value != number or not _is_wanted(jitted, function):
            return NotImplemented
        with _block(0):
            return step(jitted, args, kwargs)

    CALLS.append(call)
    try:
        with _block(number):
            yield
    finally:
        CALLS.remove(call)


def _is_wanted(jitted: Any, function: str | None) -> bool:
    """A function of the user's: those of the library are jitted, too."""
    if function is not None:
        return name_of(jitted._fun) == function
    return not str(getattr(jitted._fun, "__module__", "")).startswith(f"{__name__.partition('.')[0]}.")

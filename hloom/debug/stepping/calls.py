"""Calls of jitted functions that are stepped while a program runs: `hloom debug`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tracer.core import thread_state
from ...tracer.jit import PjitFunction
from ...tracer.wrapping import name_of

Step = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


@contextmanager
def stepped_calls(step: Step, function: str | None = None) -> Iterator[None]:
    """Within the block, each call of a jitted function is `step(function, args, kwargs)`. function: only of the one
    with this name. A call in a function that is traced, or in a step, is a part of it."""
    plain = PjitFunction.__call__
    inside = [False]

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if inside[0] or not thread_state().direct or not _is_wanted(self, function):
            return plain(self, *args, **kwargs)
        inside[0] = True
        try:
            return step(self, args, kwargs)
        finally:
            inside[0] = False

    PjitFunction.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        PjitFunction.__call__ = plain  # type: ignore[method-assign]


def _is_wanted(jitted: Any, function: str | None) -> bool:
    """A function of the user's: those of the library are jitted, too."""
    if function is not None:
        return name_of(jitted._fun) == function
    return not str(getattr(jitted._fun, "__module__", "")).startswith(f"{__name__.partition('.')[0]}.")

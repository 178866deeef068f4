"""Calls of the user's kernels and index maps: with arguments that do not fit, and with arrays from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...tracer.arrays.array import Array, is_from_outside, younger_arrays
from ...tracer.recording import TracedComputation, trace_to_computation
from ...tracer.source import user_line
from ...tracer.tracer import Tracer
from ...tracer.wrapping import signature


def call(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], explained: Callable[[], str]
) -> Any:
    """The result of a user's function.

    explained: the function, and the arguments that it is given, for messages.
    TypeError in Python's words, with this explanation and the user's line, if the function does not take them.
    """
    try:
        return function(*args, **keywords)
    except TypeError as error:
        if _takes(function, args, keywords):
            raise
        raise TypeError(f"{error}\n  {explained()}\n  at {user_line() or '<unknown>'}") from None


def _takes(function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    try:
        signature(function).bind(*args, **keywords)
    except ValueError:  # it has no signature
        return True
    except TypeError:
        return False
    return True


def parameters_of(function: Callable[..., Any]) -> str:
    """The names of its parameters, for messages."""
    return f"({', '.join(signature(function).parameters)})"


def traced(*args: Any, **keywords: Any) -> tuple[TracedComputation, list[Any]]:
    """`trace_to_computation` of a user's function; the values that it has from outside, and does not take as arguments:
    traced ones, and arrays that no function made while a function was traced."""
    with younger_arrays(captures=True):
        found = trace_to_computation(*args, **keywords, tracks_varying=True)
    outside = [v for v in found.captured if isinstance(v, Tracer) or (isinstance(v, Array) and is_from_outside(v))]
    return found, outside

"""Types and errors of a function, found by running the calls of its documented examples again, as they are and changed.

The types are those of the example's calls, and of the same call with numbers of other dtypes. Each error is one that a
changed call raised: arrays of sizes that do not fit, or with a dimension less; a string in place of an array; another
dtype; an axis out of bounds; an option of an unknown name. So a text says nothing that did not happen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp

from . import calls
from .calls import Call
from .docstrings import markdown

_DTYPES = ("bool", "int32", "float32", "complex64")
_LONGEST = 90
"""Characters of a signature of types, and of a message."""
_AXES = ("axis", "dimension", "dim", "axis1", "axis2", "concat_dimension")
_CALLS = 3
"""Calls of an example whose types are shown."""


@cache
def text(*names: str) -> str:
    """The Markdown about a function, which has these full names; empty if its example does not call it."""
    return "\n\n".join(part for part in (types(*names), errors(*names)) if part)


def types(*names: str) -> str:
    """The types of the arguments and results of the example's calls."""
    found = dict.fromkeys(_signature(call) for call in calls.recorded(*names))
    name = names[0].rpartition(".")[2]
    shown = [f"`{name}{types}`" for types in found if types and len(types) < _LONGEST][:_CALLS]
    lines = [f"Types in the example: {', '.join(shown)}."] if shown else []
    if kinds := _dtypes(*names):
        lines.append(f"Dtypes: {kinds}.")
    return "\n\n".join(lines)


def _signature(call: Call) -> str:
    named = [f"{key}={_shown(value)}" for key, value in call.kwargs.items()]
    return f"({', '.join([*map(_shown, call.args), *named])}) -> {_shown(call.result)}"


def _shown(value: Any) -> str:
    """A value as its type, with its structure; numbers and names that are no arrays as they are."""
    if isinstance(value, hloom.Array | np.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(f'{k}={_shown(v)}' for k, v in zip(value._fields, value))})"
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_shown, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_shown(v)}' for key, v in value.items())}}}"
    if isinstance(value, type) or callable(value):
        return getattr(value, "__name__", "...").replace("<lambda>", "lambda")
    text = repr(value)
    return text if len(text) <= 16 and "<" not in text else type(value).__name__


def _places(call: Call) -> list[tuple[int | str, Any]]:
    """The arguments of a call, by their positions or names."""
    return [*enumerate(call.args), *call.kwargs.items()]


def _is_array(value: Any) -> bool:
    return isinstance(value, hloom.Array | np.ndarray) and not jnp.issubdtype(value.dtype, hloom.dtypes.extended)


def _again(call: Call, changes: dict[int | str, Any]) -> Any:
    """The result of a call with other arguments; an exception where it raises one."""
    args = [changes.get(k, x) for k, x in enumerate(call.args)]
    kwargs = call.kwargs | {k: x for k, x in changes.items() if isinstance(k, str)}
    try:
        return hloom.block_until_ready(call.function(*args, **kwargs))
    except Exception as error:
        return error


def _dtypes(*names: str) -> str:
    """The dtype of the result for numbers of each kind, in words."""
    results: dict[str, list[str]] = {}
    for call in calls.recorded(*names):
        arrays = {k: x for k, x in _places(call) if _is_array(x)}
        if not arrays or not _is_array(call.result):
            continue
        dtypes = {jnp.dtype(x.dtype) for x in arrays.values()}
        if len(dtypes) != 1:
            continue
        for name in _DTYPES:
            result = _again(call, {k: jnp.asarray(x).real.astype(name) for k, x in arrays.items()})
            known = str(result.dtype) if _is_array(result) else type(result).__name__
            results.setdefault(known, []).append(name)
        break
    return "; ".join(
        f"{', '.join(kinds)} {'raise' if len(kinds) > 1 else 'raises'} `{known}`"
        if known.endswith("Error")
        else f"{', '.join(kinds)} → {known}"
        for known, kinds in results.items()
    )


# ---- errors


def errors(*names: str) -> str:
    """A list of the errors that changed calls raise; each kind of change is there once for an argument."""
    found: dict[str, Exception] = {}
    for call in calls.recorded(*names)[:_CALLS]:
        if any(callable(leaf) for leaf in hloom.tree.leaves((call.args, call.kwargs))):
            continue  # the error may be one of the example's own function
        for change, places in _changes(call):
            if change not in found and isinstance(error := _again(call, places), Exception):
                found[change] = error
    lines: dict[str, list[str]] = {}
    for change, error in found.items():
        message = "" if change.endswith(_NO_ARRAY) else _message(error)
        lines.setdefault(_kind(error) + message, []).append(change)
    shown = [f"- {error.partition(':')[0]} where {'; '.join(lines[error])}{_rest(error)}" for error in lines]
    return "Errors, among others:\n\n" + "\n".join(shown) if shown else ""


_NO_ARRAY = "is a string"


def _kind(error: Exception) -> str:
    """The class of an error, with Python's own classes above it."""
    kind = type(error)
    above = [f"`{base.__name__}`" for base in kind.__mro__ if base.__module__ == "builtins" and base not in _BASES]
    if kind.__module__ == "builtins" or not above:
        return f"`{kind.__name__}`"
    return f"`{kind.__name__}` (a {' and '.join(above)})"


_BASES = (object, BaseException, Exception, LookupError, ArithmeticError)


def _rest(line: str) -> str:
    """The message of an error, after its class."""
    return f": {message.strip()}" if (message := line.partition(":")[2]) else ""


def _message(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0].rstrip(".:")
    return f": {markdown(first)}" if 0 < len(first) <= _LONGEST else ""


def _changes(call: Call) -> Iterator[tuple[str, dict[int | str, Any]]]:
    """Changes that may make a call wrong: the condition in words, and the arguments."""
    named = _parameters(call.function)
    arrays = {k: x for k, x in _places(call) if _is_array(x)}
    for (a, x), (b, y) in list(pairwise(arrays.items()))[:1]:
        sizes = {a: jnp.ones(3, x.dtype), b: jnp.ones(4, y.dtype)}
        yield f"{named(a)} has 3 elements and {named(b)} has 4", sizes
    for place, x in arrays.items():
        name = named(place)
        yield f"{name} {_NO_ARRAY}", {place: "text"}
        if np.ndim(x):
            more = jnp.concatenate([jnp.asarray(x)] * 2, axis=-1) if np.size(x) else jnp.ones((*x.shape[:-1], 3))
            if len(arrays) > 1:
                yield f"{name} has twice the elements in its last dimension", {place: more}
            else:
                yield f"{name} is {_sizes(more)}", {place: more}
            yield f"{name} has no dimensions", {place: jnp.asarray(x).ravel()[0] if np.size(x) else 0.0}
        if np.ndim(x) > 1:
            yield f"{name} has a dimension less", {place: jnp.asarray(x)[0]}
    for place, value in _given(call):
        name = named(place)
        if name.strip("`") in _AXES and isinstance(value, int | None):
            ranks = [np.ndim(x) for x in arrays.values()]
            if ranks:
                yield f"{name} is {max(ranks) + 1}, out of bounds", {place: max(ranks) + 1}
        elif isinstance(value, str) and value.isidentifier():
            yield f"{name} has an unknown name", {place: "no such"}


def _sizes(x: Any) -> str:
    return f"of sizes {x.shape}"


def _given(call: Call) -> Iterator[tuple[int | str, Any]]:
    """The arguments of a call, and the defaults of those that it does not give by name."""
    yield from _places(call)
    given = {*call.kwargs}
    try:
        parameters = list(inspect.signature(call.function).parameters.values())
    except (TypeError, ValueError):
        return
    for k, parameter in enumerate(parameters):
        is_free = k >= len(call.args) and parameter.name not in given
        if is_free and parameter.default is not parameter.empty and parameter.kind is not parameter.POSITIONAL_ONLY:
            yield parameter.name, parameter.default


def _parameters(function: Callable[..., Any]) -> Callable[[int | str], str]:
    """A function from the place of an argument to its name, as code."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []

    def name(place: int | str) -> str:
        if isinstance(place, str):
            return f"`{place}`"
        if place < len(parameters) and parameters[place].kind is not inspect.Parameter.VAR_POSITIONAL:
            return f"`{parameters[place].name}`"
        return f"argument {place + 1}"

    return name

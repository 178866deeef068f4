"""Errors of public functions name the function that the user called, the types of its arguments, and the line.

    bitwise_and does not accept dtype float32: it accepts booleans and integers
      in bitwise_and(x1: float32 (3,), x2: 1)
      at program.py:6 (in step)

The boundary of a public function (`tracebacks.py`) completes an error that leaves it, so the code that finds a mistake
needs to know neither the function that the user wrote nor its arguments. An error of a shape rule speaks of the
instruction that broke the rule, "dot of (float32[3], float32[4]): why". The boundary keeps these types only where they
are not those of the arguments. Errors that come from functions of the user stay as they are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from types import FrameType, FunctionType
from typing import Any

from .support.lazy import lazy_pattern
from .support.loading import load
from .support.source import is_users

_ERRORS = (
    *(TypeError, ValueError, IndexError, NotImplementedError, OverflowError, RuntimeError, AttributeError, NameError),
)
_OPERATION = lazy_pattern(r"([\w.-]+) of \(?((?:\w+\[[\d,]*\](?:, | and )?)+)\)?: ")
_UNKNOWN = lazy_pattern(r".*\(\) got an unexpected keyword argument '(\w+)'$")
_SHAPE = lazy_pattern(r"\[([\d,]*)\]")
_WORD = lazy_pattern(r"\b[a-z]+\d\w*\b|\bpred\b")
_IS_ENGLISH = frozenset(
    [
        *("all", "and", "any", "array", "at", "bool", "float", "index", "int", "map", "not", "or", "pad", "select"),
        *("set", "sort", "take", "where"),
    ]
)
"""Names of functions that sentences have as words, too."""
_PACKAGE = f"{__name__.partition('.')[0]}."
_REFLECTED = frozenset(
    [
        *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"),
        *("lshift", "rshift", "and", "xor", "or"),
    ]
)
_VARIADIC = 0x04  # CO_VARARGS
_LONGEST, _MOST = 40, 4
_RESULT = "(...)"
"""After the name of a transformation: the user called the function that it made, as in ``grad(...)(x)``."""


def in_numpy_words(text: str) -> str:
    """A message about HLO shapes with NumPy's names of the element types: ``pred[3]`` is ``bool[3]``."""
    of_hlo = load(".element_type", __package__).ElementType  # it imports ml_dtypes: a message is worth that
    names = {element.value: element.dtype.name for element in of_hlo}
    return _WORD.sub(lambda found: names.get(found[0], found[0]), text)


def is_called_by_user(frame: FrameType) -> bool:
    """Whether a function of the user called the function that a frame runs."""
    return frame.f_back is not None and is_users(frame.f_back)


def complete(error: BaseException, frame: FrameType) -> None:
    """Add the call that a frame runs, and the user's line, to the message of an error that comes from inside of it."""
    if len(error.args) != 1 or not isinstance(error.args[0], str) or getattr(error, "is_complete", False):
        return
    if frame.f_code.co_name == "__getattr__":
        return  # `hasattr` asks for attributes that are not there
    if not isinstance(error, _ERRORS) and not type(error).__module__.startswith(_PACKAGE):
        return
    message = error.args[0]
    if (unknown := _UNKNOWN.match(message)) is not None and (known := list(_defaults(_function(frame)))):
        message = f"{message}. {_suggested(unknown[1], known)}"
    name = _name(frame)
    if name:
        given = [(label, value) for label, value in _arguments(frame) if label != "cls"]
        listed = [f"{label}: {_shown(value)}" if label not in ("", "self") else _shown(value) for label, value in given]
        message = f"{_named(message, name.removesuffix(_RESULT), given)}\n  in {name}({', '.join(listed)})"
    caller = frame.f_back
    assert caller is not None
    place = f"at {caller.f_code.co_filename}:{caller.f_lineno} (in {caller.f_code.co_name})"
    if place not in message:
        message = f"{message}\n  {place}"
    error.args = (message,)


def _name(frame: FrameType) -> str:
    """The name by which the user called the function that a frame runs; "" if it has none.

    It is in the qualified name of the boundary's code: "sum", "Array.reshape", or "grad.<locals>.grad_f" for the
    function that `grad` made. An object with `__call__` is a function of a namespace, with its name, or says by
    `_made_by` which transformation made it.
    """
    outer, is_inside, last = frame.f_code.co_qualname.partition(".<locals>.")
    *_, method = frame.f_code.co_qualname.split(".")
    if method == "__call__":
        function = _self(frame)
        maker = getattr(type(function), "_made_by", "")
        if maker and not str(getattr(function, "__module__", "")).startswith(_PACKAGE):
            return f"{maker}{_RESULT}"
        return str(getattr(function, "__name__", ""))
    if is_inside and "." not in last:
        return f"{outer}{_RESULT}" if outer.isidentifier() and not outer.startswith("_") else ""
    if method == "__init__":
        return type(_self(frame)).__name__
    if method.startswith("__"):
        name = method.strip("_")
        return name[1:] if name[0] == "r" and name[1:] in _REFLECTED else name
    return "" if method.startswith("_") else method


def _self(frame: FrameType) -> Any:
    """The object of a method: the argument `self`, or the first one of a boundary that takes any."""
    return frame.f_locals["self"] if "self" in frame.f_locals else frame.f_locals["args"][0]


def _named(message: str, name: str, given: list[tuple[str, Any]]) -> str:
    """The message of a function: it begins with the name, if it has not named the function already."""
    operation = _OPERATION.match(message)
    if operation is not None:
        opcode, types = operation.groups()
        why = message[operation.end() :]
        if why.startswith(f"{opcode} "):
            why = why[len(opcode) + 1 :]
            return f"{name} {why}"
        if opcode == name or set(_SHAPE.findall(types)) <= set(_sizes([value for _, value in given])):
            message = why
    first = message.partition("\n")[0]
    is_named = re.match(rf"(\w+\.)*{re.escape(name)}\b", first)
    if not is_named and name not in _IS_ENGLISH:
        is_named = re.search(rf"\b{re.escape(name)}\b", first)
    return message if is_named else f"{name}: {message}"


def _suggested(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.replace("_", ""), known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"It takes {', '.join(known)}."


def _sizes(values: list[Any]) -> Iterator[str]:
    """The shapes of arrays among values and in lists, as types have them: "3,4"."""
    for value in values:
        if _is_sequence(value):
            yield from _sizes([*value])
        elif isinstance(shape := getattr(value, "shape", ()), tuple):
            yield ",".join(map(str, shape))


def _function(frame: FrameType) -> Any:
    """The function behind the one that a frame runs, with its signature; None if that has its own."""
    return frame.f_locals.get("fun") or getattr(frame.f_locals.get("self"), "_fun", None)


def _arguments(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The names and values of the arguments; without those that are their defaults."""
    code, local = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = _defaults(local.get("fun"))
    is_object = code.co_name in ("__call__", "__init__")  # the first argument is the function itself
    for name in names[is_object and "self" in names :]:
        value = local.get(name)
        if value is not defaults.get(name):
            yield name, value
    if code.co_flags & _VARIADIC:
        inner = _declared(_function(frame))
        labels = inner.__code__.co_varnames[: inner.__code__.co_argcount] if isinstance(inner, FunctionType) else ()
        for k, value in enumerate(local.get("args", ())[is_object and "self" not in names :]):
            yield labels[k] if k < len(labels) else "", value
        yield from local.get("kwargs", {}).items()


def _declared(fun: Any) -> Any:
    """The function whose signature counts: a decorator's function takes any arguments for the one that it wraps."""
    while isinstance(fun, FunctionType) and fun.__code__.co_flags & _VARIADIC and hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    return fun


def _defaults(fun: Any) -> dict[str, Any]:
    """The values of arguments that are not given; `_REQUIRED` where they must be given."""
    fun = _declared(fun)
    if not isinstance(fun, FunctionType):
        return {}
    names, defaults = fun.__code__.co_varnames[: fun.__code__.co_argcount], fun.__defaults__ or ()
    required = names[: len(names) - len(defaults)]
    given = dict(zip(reversed(names), reversed(defaults), strict=False))
    return {**dict.fromkeys(required, _REQUIRED), **given, **(fun.__kwdefaults__ or {})}


_REQUIRED = object()
"""A value that no argument has."""


def _shown(value: Any) -> str:
    """The type of an array; a number, a text or a short sequence of these itself; else the name of the type."""
    kind = type(value).__name__
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(shape, tuple) and dtype is not None and not isinstance(value, type):
        return f"{getattr(dtype, 'name', dtype)} {shape}"
    if value is None or isinstance(value, bool | int | float | complex | str):
        return _short(value) or kind
    if _is_sequence(value):
        if all(isinstance(v, bool | int | float | complex | str) for v in value):
            return f"{kind} {_short(value)}".rstrip()
        listed = ", ".join([_listed(v) for v in value[:_MOST]])
        return f"{kind} [{listed}{', ...' if len(value) > _MOST else ''}]"
    return getattr(value, "__name__", kind) if isinstance(value, type | FunctionType) else kind


def _listed(value: Any) -> str:
    return (_short(value) or type(value).__name__) if _is_sequence(value) else _shown(value)


def _is_sequence(value: Any) -> bool:
    """Whether it is a list or a tuple, of a class that does not define what its elements are."""
    return getattr(type(value), "__len__", None) in (list.__len__, tuple.__len__)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else ""

"""Errors of public functions name the function that the user called, and the types of its arguments.

    bitwise_and: and of (f32[3], f32[3]): and does not accept dtype float32...
      at program.py:6
      in bitwise_and(x1: float32 (3,), x2: 1)

A function is declared once, where it is made public; its boundary (`tracebacks.py`) tells an error that leaves it. So
an error from deep inside names the function that the user has written. Errors that come from functions of the user stay
as they are.
"""

from __future__ import annotations

import re
from types import CodeType, FrameType, FunctionType
from typing import Any

from .errors import HloParseError
from .source import is_users

_NAMES: dict[CodeType, str | None] = {}
"""The public name of each boundary's code; None for a method of an object that has a name itself."""
_ERRORS = (TypeError, ValueError, IndexError, NotImplementedError, OverflowError)
_CALL = re.compile(r"\w+\.\w+\(")
_VARIADIC = 0x04  # CO_VARARGS
_LONGEST, _MOST = 40, 4


def names_call(code: CodeType, name: str | None = None) -> None:
    """Declare that users call this code by `name`; None: by the `__name__` of its first argument."""
    _NAMES[code] = name


def is_named(frame: FrameType) -> bool:
    """Whether a frame runs a public function that a function of the user called."""
    return frame.f_code in _NAMES and frame.f_back is not None and is_users(frame.f_back)


def name_call(error: BaseException, frame: FrameType) -> None:
    """Add the call that the frame runs to the message of an error that comes from inside of it. One about a text, which
    begins with the place there, and one that begins with a call itself, stay as they are."""
    is_text = len(error.args) == 1 and isinstance(error.args[0], str)
    if not is_text or not isinstance(error, _ERRORS) or isinstance(error, HloParseError) or _CALL.match(error.args[0]):
        return
    name = _NAMES[frame.f_code] or str(frame.f_locals["self"].__name__)
    message = error.args[0]
    if not re.search(rf"\b{re.escape(name)}\b", message):
        message = f"{name}: {message}"
    listed = [f"{label}: {shown}" if label not in ("", "self") else shown for label, shown in _arguments(frame)]
    error.args = (f"{message}\n  in {name}({', '.join(listed)})",)


def _arguments(frame: FrameType) -> list[tuple[str, str]]:
    """The names and types of the arguments; without those that are None, as most that are not given are."""
    code, local = frame.f_code, frame.f_locals
    given = [(n, local.get(n)) for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    if _NAMES[code] is None:
        del given[0]  # the function itself
    if code.co_flags & _VARIADIC:
        inner = local.get("fun") or getattr(local.get("self"), "_fun", None)
        labels = inner.__code__.co_varnames[: inner.__code__.co_argcount] if isinstance(inner, FunctionType) else ()
        args = local.get("args", ())
        given += [(labels[k] if k < len(labels) else "", arg) for k, arg in enumerate(args)]
        given += local.get("kwargs", {}).items()
    return [(label, _shown(value)) for label, value in given if value is not None]


def _shown(value: Any) -> str:
    """The type of an array; a number, a text or a short sequence of these itself; else the name of the type."""
    kind = type(value).__name__
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(shape, tuple) and dtype is not None and not isinstance(value, type):
        return f"{getattr(dtype, 'name', dtype)} {shape}"
    if isinstance(value, bool | int | float | complex | str):
        return _short(value) or kind
    if isinstance(value, tuple | list):
        if all(isinstance(v, bool | int | float | complex | str) for v in value):
            return f"{kind} {_short(value)}".rstrip()
        listed = ", ".join([type(v).__name__ if isinstance(v, tuple | list) else _shown(v) for v in value[:_MOST]])
        return f"{kind} [{listed}{', ...' if len(value) > _MOST else ''}]"
    return getattr(value, "__name__", kind) if isinstance(value, type | FunctionType) else kind


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else ""

"""Tracebacks that show the user's frames only.

A public function is a boundary: an error that leaves it loses the frames of this library and of the libraries that it
called. Frames of the user's functions in between stay. Two forms, which do the same:

    @boundary                      # a function that users call
    def f(x): ...

    def __call__(self, x):         # where even a call of a wrapper is too much
        try:
            ...
        except BaseException as error:
            hide(error)
            raise

An error that passes several boundaries is cleaned by each. Nothing happens where there is no error: since Python 3.11 a
`try` costs nothing. `raise` must stand in the function itself: it goes on with the traceback that `hide` has left, and
does not add the frame again.

`HLOOM_TRACEBACK=full`, or `hloom.config.update("jax_traceback_filtering", "off")`, shows all frames.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from traceback import format_exception_only
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from ..called import complete, is_called_by_user
from .source import is_internal


class Signal(Exception):
    """An exception for the library's own control flow. It never reaches a user."""


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

MODES = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
"""The values of JAX's setting. `remove_frames`: the error has a cause, the same error with all frames
(`UnfilteredStackTrace`); `quiet_remove_frames`: a note says that frames are missing; `auto`: nothing says so.
`tracebackhide`: frames are marked; IPython and pytest leave marked frames out, but for the last one, and their
debuggers can go there."""
_LIBRARIES = ("numpy", "ml_dtypes", "scipy", "optree", "opt_einsum", "numba", "llvmlite")
"""Libraries that this one calls."""
_FAULTS = (AssertionError, KeyError, NameError, SystemError)
"""Errors that this library does not raise on purpose, unless it has a class of its own for them."""
_PACKAGE = f"{__name__.partition('.')[0]}."
NOTE = "This error comes from inside of hloom. HLOOM_TRACEBACK=full shows where."
REMOVED = "For simplicity, frames of hloom have been removed from this traceback. HLOOM_TRACEBACK=full shows them."


class UnfilteredStackTrace(Exception):
    """With the setting `remove_frames` the cause of an error that lost frames: its traceback has all of them, and it
    has the cause of that error as its own."""

    shown: TracebackType | None = None
    """The traceback that the error was left with."""


# ---- the setting


def _from_environment() -> str:
    own = os.environ.get("HLOOM_TRACEBACK", "").strip().lower()
    if own not in ("", "full", "short"):
        raise ValueError(f"environment variable HLOOM_TRACEBACK must be full or short, not {own!r}")
    mode = os.environ.get("JAX_TRACEBACK_FILTERING", "").strip().lower() or "auto"
    check_mode(mode)
    return "off" if own == "full" else "auto" if own == "short" else mode


def check_mode(mode: str) -> None:
    """ValueError if `jax_traceback_filtering` cannot be `mode`."""
    if mode not in MODES:
        raise ValueError(f"jax_traceback_filtering is one of {', '.join(MODES)}, not {mode!r}")


_mode = _from_environment()


def mode() -> str:
    """The setting `jax_traceback_filtering`."""
    return _mode


def set_mode(new: str) -> None:
    """Change the setting, for the process."""
    global _mode
    check_mode(new)
    _mode = new


# ---- hiding frames


def hide(error: BaseException) -> None:
    """Take frames that are not the user's out of the traceback of an error, and of the errors that led to it. Where the
    user called the caller, the error names the call."""
    if isinstance(error, Signal):
        return
    boundary = sys._getframe(1)
    if is_called_by_user(boundary) and all(hidden for _, hidden in _entries(error.__traceback__)):
        complete(error, boundary)
    if _mode == "off":
        return
    is_fault = isinstance(error, _FAULTS) and not type(error).__module__.startswith(_PACKAGE)
    if is_fault and _is_ours(error) and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)
    if _mode == "tracebackhide":
        for each in _chain(error):
            _mark(each.__traceback__)
        return
    whole = error.__traceback__
    for each in _chain(error):
        _strip(each)
    if error.__traceback__ is whole:
        return
    if _mode == "quiet_remove_frames" and REMOVED not in getattr(error, "__notes__", ()):
        error.add_note(REMOVED)
    elif _mode == "remove_frames":
        _keep(error, whole)


def _keep(error: BaseException, whole: TracebackType | None) -> None:
    """Make a cause of an error that has its traceback as it was before frames were removed, here and within."""
    inner_frames, until = None, None
    cause = error.__cause__
    if isinstance(cause, UnfilteredStackTrace):
        inner_frames, until = cause.__traceback__, cause.shown
    else:
        cause = UnfilteredStackTrace("".join(format_exception_only(error)).strip())
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        cause.__suppress_context__ = error.__suppress_context__
        error.__cause__ = cause
    outer: list[TracebackType] = []
    while whole is not None and whole is not until:
        outer.append(whole)
        whole = whole.tb_next
    cause.__traceback__ = _linked(outer, inner_frames)
    cause.shown = error.__traceback__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and contexts, and the members of groups, each once."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if not isinstance(each, UnfilteredStackTrace):
            yield each
        pending += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            pending += each.exceptions


def _entries(traceback: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """Each entry, outermost first, and whether it is hidden."""
    hidden = False
    while traceback is not None:
        frame = traceback.tb_frame
        hidden = is_internal(frame) or (hidden and _is_of_a_library(frame))
        yield traceback, hidden
        traceback = traceback.tb_next


def _strip(error: BaseException) -> None:
    entries = list(_entries(error.__traceback__))
    kept = [entry for entry, hidden in entries if not hidden]
    if len(kept) == len(entries):
        return
    error.__traceback__ = _linked(kept, None)


def _linked(entries: list[TracebackType], last: TracebackType | None) -> TracebackType | None:
    """A traceback of these entries, followed by `last`."""
    for entry in reversed(entries):
        last = TracebackType(last, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return last


def _mark(traceback: TracebackType | None) -> None:
    for entry, hidden in _entries(traceback):
        if hidden:
            entry.tb_frame.f_locals["__tracebackhide__"] = True


def _is_ours(error: BaseException) -> bool:
    """True if the innermost frame is hidden: the error was raised by this library."""
    entries = list(_entries(error.__traceback__))
    return bool(entries) and entries[-1][1]


def _is_of_a_library(frame: FrameType) -> bool:
    """True for code of the standard library, and of libraries that this one calls."""
    file = frame.f_code.co_filename
    if file.startswith("<"):  # made by exec, or frozen
        name = str(frame.f_globals.get("__name__")).partition(".")[0]
        return name in _LIBRARIES or (name != "__main__" and name in sys.stdlib_module_names)
    if file.startswith(_STANDARD) and not any(part in file for part in _INSTALLED):
        return True
    folders = [os.path.dirname(sys.modules[name].__file__ or "?") for name in _LIBRARIES if name in sys.modules]
    return file.startswith(tuple(folder + os.sep for folder in folders))


_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


# ---- boundaries


def boundary(fun: F) -> F:
    """`fun`, as users call it. It keeps its name, signature and documentation; `__wrapped__` is the function itself."""
    code = cast("Any", fun).__code__
    count = code.co_argcount
    names = code.co_varnames[:count]
    wrapper: Any
    if code.co_kwonlyargcount or code.co_flags & _VARIADIC or not 0 < count <= len(_WRAPPERS) or "error" in names:
        wrapper = _any_arguments(fun)
        named = {}
    else:  # the same parameters: then a call costs a third
        wrapper = _WRAPPERS[count - 1](fun)
        named = {"co_varnames": (*names, "error"), "co_posonlyargcount": code.co_posonlyargcount}
        wrapper.__defaults__ = cast("Any", fun).__defaults__
    wrapper.__code__ = wrapper.__code__.replace(co_name=code.co_name, co_qualname=code.co_qualname, **named)
    for attribute in _KEPT:
        setattr(wrapper, attribute, getattr(fun, attribute))
    wrapper.__dict__.update(fun.__dict__)
    wrapper.__wrapped__ = fun
    return cast("F", wrapper)


_VARIADIC = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS
_ANNOTATIONS = "__annotate__" if sys.version_info >= (3, 14) else "__annotations__"
_KEPT = ("__module__", "__name__", "__qualname__", "__doc__", _ANNOTATIONS)


def boundaries(cls: C, *names: str) -> C:
    """The class, with its own methods as boundaries: those named; if none is, the public ones and the operators.

    Properties only if they are named. A decorator.
    """
    chosen = names or [n for n in vars(cls) if n in _OPERATORS or not n.startswith("_")]
    for name in chosen:
        member = vars(cls)[name]
        if isinstance(member, FunctionType):
            setattr(cls, name, boundary(member))
        elif isinstance(member, property) and name in names and member.fget is not None:
            setattr(cls, name, property(boundary(member.fget), member.fset, member.fdel, member.__doc__))
        elif isinstance(member, classmethod | staticmethod) and isinstance(member.__func__, FunctionType):
            setattr(cls, name, type(member)(boundary(member.__func__)))
    return cls


_BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"),
    *("lshift", "rshift", "and", "xor", "or"),
)
_OTHER = (
    *("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "round"),
    *("contains", "getitem", "setitem", "iter", "reversed", "len", "call"),
    *("bool", "int", "float", "complex", "index", "format", "array", "dlpack", "reduce", "repr", "str"),
)
_OPERATORS = frozenset(f"__{name}__" for name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_OTHER))


def _any_arguments(fun: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise

    return call


def _one(fun: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any) -> Any:
        try:
            return fun(a)
        except BaseException as error:
            hide(error)
            raise

    return call


def _two(fun: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, b: Any) -> Any:
        try:
            return fun(a, b)
        except BaseException as error:
            hide(error)
            raise

    return call


def _three(fun: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, b: Any, c: Any) -> Any:
        try:
            return fun(a, b, c)
        except BaseException as error:
            hide(error)
            raise

    return call


_WRAPPERS = (_one, _two, _three)


def inner(fun: Any) -> Any:
    """The function behind a boundary; any other object is itself."""
    if isinstance(fun, FunctionType) and fun.__code__.co_filename == __file__ and fun.__closure__:
        return fun.__closure__[0].cell_contents  # not __wrapped__, which a wrapper of the wrapper changes
    return fun

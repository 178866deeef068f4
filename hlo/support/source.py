"""Where in the user's program an operation comes from: the nearest stack frame outside this library.

A frame is judged by its code object's file name, each file name once. A library that calls the user's functions
registers its folder with `add_internal_folders`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from types import FrameType

from ..metadata import Metadata, PlacedMetadata

_PACKAGE = __name__.removesuffix(".hlo.support.source")
_FOLDERS = ("autodiff", "hlo", "hloom", "numba_backend", "tracer")


def _own_folders() -> list[str]:
    """The package, and the folders that its links point to: code may be loaded by either path."""
    package = sys.modules[_PACKAGE]
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    folders = [*package.__path__, *(os.path.join(beside, name) for name in _FOLDERS)]
    return [os.path.join(os.path.abspath(folder), "") for folder in folders]


_INTERNAL_FOLDERS = _own_folders()
_OWN_FOLDERS = tuple(_INTERNAL_FOLDERS)
_INTERNAL_FILES = {functools.__file__, contextlib.__file__, "<string>", "<frozen runpy>"}
_IS_INTERNAL: dict[str, bool] = {}


def add_internal_folders(*folders: str) -> None:
    """Declare that frames of files in `folders` are not the user's."""
    _INTERNAL_FOLDERS.extend(folder.rstrip(os.sep) + os.sep for folder in folders)
    _IS_INTERNAL.clear()


def add_internal_file(path: str) -> None:
    """Declare that frames of one file are not the user's: messages and metadata name the line that called it."""
    _INTERNAL_FILES.add(path)
    _IS_INTERNAL.clear()


def remove_internal_file(path: str) -> None:
    """Undo `add_internal_file`."""
    _INTERNAL_FILES.discard(path)
    _IS_INTERNAL.clear()


def internal_files() -> frozenset[str]:
    """The files that `add_internal_file` has declared, and some of Python's own."""
    return frozenset(_INTERNAL_FILES)


def _judge(filename: str) -> bool:
    internal = filename in _INTERNAL_FILES or os.path.abspath(filename).startswith(tuple(_INTERNAL_FOLDERS))
    _IS_INTERNAL[filename] = internal
    return internal


def is_internal(frame: FrameType) -> bool:
    """True if the frame runs code of this library, or code that it made by `exec`, as dataclasses do."""
    file = frame.f_code.co_filename
    if file.startswith("<"):
        return str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE
    return os.path.abspath(file).startswith(_OWN_FOLDERS)


def is_users(frame: FrameType) -> bool:
    """True if the frame runs code from outside this library and those libraries that call the user's functions."""
    filename = frame.f_code.co_filename
    internal = _IS_INTERNAL.get(filename)
    return not (_judge(filename) if internal is None else internal)


def user_frame() -> FrameType | None:
    """The innermost frame that runs code from outside this library, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = _IS_INTERNAL.get(filename)
        if internal is None:
            internal = _judge(filename)
        if not internal:
            return frame
        frame = frame.f_back
    return None


def user_metadata(op_name: str) -> Metadata:
    """Metadata for an instruction called `op_name` that the user's current line creates."""
    frame = user_frame()
    if frame is None:
        return _metadata(op_name, "", 0)
    return _metadata(op_name, frame.f_code.co_filename, frame.f_lineno)


def placed_metadata(op_name: str, order: int) -> Metadata:
    """`user_metadata` with the column and the function, as `PlacedMetadata`; without them where there is no user."""
    frame = user_frame()
    if frame is None:
        return _metadata(op_name, "", 0)
    code = frame.f_code
    _, _, column, _ = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
    return PlacedMetadata(op_name, code.co_filename, frame.f_lineno, (), column or 0, code.co_qualname, order)


@functools.lru_cache(maxsize=4096)
def _metadata(op_name: str, file: str, line: int) -> Metadata:
    return Metadata(op_name, file, line)


def user_line() -> str:
    """The user's current line for messages: ``file.py:12 (in train_step)``; empty if there is none."""
    frame = user_frame()
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} (in {frame.f_code.co_name})"


def function_line(fun: object) -> str:
    """Where a function is defined, for messages: ``f at file.py:10``; its name alone if that is not known."""
    name = getattr(fun, "__name__", None) or type(fun).__name__
    code = getattr(fun, "__code__", None)
    while code is not None and code.co_filename.startswith(_OWN_FOLDERS) and hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__  # this library's wrapper
        code = getattr(fun, "__code__", None)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else name

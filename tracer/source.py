"""Where in the user's program an operation comes from: the nearest frame outside this library.

What is looked at: code objects' file names, each judged once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from types import FrameType

import optree

from ..hlo.ir import Metadata

_HERE = os.path.dirname(os.path.abspath(__file__))
_PARENT = os.path.dirname(_HERE)
_INTERNAL_FOLDERS = tuple(
    folder + os.sep
    for folder in (
        *(os.path.join(_PARENT, name) for name in ("tracer", "autodiff", "hlo", "numba_backend", "hloom")),
        os.path.dirname(os.path.abspath(optree.__file__)),
        os.path.join(sysconfig.get_path("purelib"), "opt_einsum"),
    )
)
_INTERNAL_FILES = frozenset({functools.__file__, contextlib.__file__, "<string>", "<frozen runpy>"})
_IS_INTERNAL: dict[str, bool] = {}


def _judge(filename: str) -> bool:
    internal = filename in _INTERNAL_FILES or os.path.abspath(filename).startswith(_INTERNAL_FOLDERS)
    _IS_INTERNAL[filename] = internal
    return internal


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
    """Metadata of an instruction called `op_name` that the user's current line makes."""
    frame = user_frame()
    if frame is None:
        return Metadata(op_name)
    return Metadata(op_name, frame.f_code.co_filename, frame.f_lineno)


def user_line() -> str:
    """The user's current line for messages: ``file.py:12 (in train_step)``; empty if there is none."""
    frame = user_frame()
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} (in {frame.f_code.co_name})"


def function_line(fun: object) -> str:
    """Where a function is defined, for messages: ``f at file.py:10``; its name alone if that is not known."""
    code = getattr(fun, "__code__", None)
    name = getattr(fun, "__name__", None) or type(fun).__name__
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else name

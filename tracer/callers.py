"""Distinguishes the user's calls from the library's own.

Settings such as strict promotion are about the code of users. The library's code combines arrays of all dtypes and
ranks, and functions of users that it calls are under the user's settings again. Nothing is entered or left for that:
where a setting would refuse, or warn, `is_call_of_user` inspects the stack. So it costs nothing as long as nothing is
refused, and holds for each function and method of the library.

On the stack, from the inside out, are

* helpers, then the public function that promotes its arguments: a name without an underscore, or code that is declared
  public, in a module with functions that a namespace offers;
* the code that leads to it: operators and methods of arrays, boundaries, the call of a ufunc, and tracer and
  transformations, which call the functions they are given (`jit(jnp.add)`);
* the caller: a function of the user, or one of the library.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from ..hlo.library import part_above
from ..hlo.support.source import is_users

_PACKAGE = __name__.removesuffix(".tracer.callers")
_LAYERS = frozenset({"autodiff", "hlo", "numba_backend", "tracer"})
"""The folders below the library of functions."""
_OPERATORS = f"{_PACKAGE}.tracer.arrays.operators"
_BOUNDARIES = f"{_PACKAGE}.hlo.support.tracebacks"
_LEADING_ON: set[CodeType] = set()
_PUBLIC: set[CodeType] = set()


def leads_on(code: CodeType) -> None:
    """Declare that a method of the library calls the public function that the object is: its caller is that one's."""
    _LEADING_ON.add(code)


def declare_public(code: CodeType) -> None:
    """Declare that functions with this code are public ones, though they are made inside of another function."""
    _PUBLIC.add(code)


def is_call_of_user(inside: Any = None) -> bool:
    """Whether the public function of the library that runs was called by a function of the user.

    inside: a function that is about to be called, so that it is not on the stack.
    """
    frame: FrameType | None = sys._getframe(1)
    found, through_operator = inside is not None and _is_public(inside.__code__, inside.__globals__), False
    while frame is not None:
        if is_users(frame):
            return True
        module = str(frame.f_globals.get("__name__"))
        package, _, rest = module.partition(".")
        if package == _PACKAGE and rest.partition(".")[0] not in _LAYERS:
            if not found:
                found = _is_public(frame.f_code, frame.f_globals)
            elif frame.f_code not in _LEADING_ON:
                return False
        elif module == _OPERATORS:
            through_operator = found
        elif through_operator and package == _PACKAGE and module != _BOUNDARIES:
            return False  # a layer below adds arrays of its own
        frame = frame.f_back
    return False


def _is_public(code: CodeType, module: dict[str, Any]) -> bool:
    is_public = not code.co_qualname.startswith("_") or code in _PUBLIC
    return is_public and part_above("namespaces").is_home(module["__name__"])

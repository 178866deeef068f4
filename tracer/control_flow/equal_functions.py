"""Functions that compute the same: of the same code, with the same values around it.

A loop outside of jit is made once for its body. A function that has its body inside of it makes a new one whenever it
is called, and each would be traced and compiled anew. `earlier` is the first of such functions, under which the loop is
found again. Only values that cannot change count as the same, and only code that does nothing but compute: it writes no
variables of others, and calls nothing but this library, NumPy's functions that neither draw nor read files, and other
such code.
"""

from __future__ import annotations

import builtins
import dis
import weakref
from collections.abc import Callable, Hashable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..caches import on_clear

_MOST = 256
"""Functions that are kept."""
_MOST_VALUES = 100
"""Values that are looked at for one function: functions that call each other may have very many paths."""
_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "complex", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "map",
    "max", "min", "pow", "range", "reversed", "round", "slice", "sorted", "sum", "tuple", "zip", "True", "False",
    "None",
})  # fmt: skip
_MODULES = ("hloom", "jax", "numpy", "math", "functools", "operator")
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_WRITES = frozenset({"STORE_GLOBAL", "STORE_NAME", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME"})
_OUTSIDE = frozenset({"STORE_DEREF", "DELETE_DEREF"})

_READERS = frozenset({"random", "load", "loadtxt", "fromfile", "genfromtxt", "memmap", "open_memmap"})
"""NumPy's names of which two uses may give two results."""

_known: dict[Hashable, Callable[..., Any]] = {}
on_clear(_known.clear)
_names: weakref.WeakKeyDictionary[CodeType, tuple[str, ...] | None] = weakref.WeakKeyDictionary()


class _Unknown(Exception):
    """A value that may change, or code that may do more than compute."""


def earlier(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The first function that computes the same, as far as can be known; otherwise `fun`."""
    if type(fun) is not FunctionType or fun.__closure__ is None:  # a function without variables of others is its own
        return fun
    try:
        key = _Look().key(fun)
    except (_Unknown, ValueError):  # a variable that has no value yet
        return fun
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MOST:
            _known.clear()
        found = _known[key] = fun
    return found


class _Look:
    """One look at a function and all values around it."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def key(self, fun: FunctionType) -> Hashable:
        """Equal for functions that compute the same. Raises _Unknown."""
        if fun.__kwdefaults__ or vars(fun):
            raise _Unknown
        names = _read(fun.__code__)
        known, parts = fun.__globals__, []
        for name in names:
            if name in known:
                parts.append(self._value(known[name]))
            elif name not in _BUILTINS and hasattr(builtins, name):
                raise _Unknown
        cells = [self._value(cell.cell_contents) for cell in fun.__closure__ or ()]
        defaults = self._value(fun.__defaults__)
        return (fun.__code__, fun.__code__.co_filename, defaults, tuple(parts), tuple(cells))

    def _value(self, value: Any) -> Hashable:
        self._left -= 1
        if self._left < 0:
            raise _Unknown
        kind = type(value)
        if kind in (int, bool, str, bytes, type(None)):
            return kind, value
        if kind in (float, complex):
            return kind, repr(value)  # -0.0 is another number than 0.0
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return kind, value.tobytes()
        if isinstance(value, np.dtype):
            return value
        if kind is tuple:
            return kind, tuple([self._value(part) for part in value])
        if kind is FunctionType:
            return kind, self.key(value)
        if isinstance(value, ModuleType):
            first, *rest = value.__name__.split(".")
            if first in _MODULES and not (first == "numpy" and "random" in rest):
                return kind, value.__name__
        raise _Unknown


def _read(code: CodeType) -> tuple[str, ...]:
    """The names that the code may look up, its own and those of functions in it. Raises _Unknown for code that does
    more than compute."""
    if code not in _names:
        _names[code] = _looked_up(code)
    found = _names[code]
    if found is None:
        raise _Unknown
    return found


def _looked_up(code: CodeType) -> tuple[str, ...] | None:
    names = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS:
            names.add(instruction.argval)
        of_others = instruction.opname in _OUTSIDE and instruction.argval in code.co_freevars
        if instruction.opname in _WRITES or of_others:
            return None
    if not _READERS.isdisjoint(code.co_names):
        return None
    for part in code.co_consts:
        if isinstance(part, CodeType):
            inner = _looked_up(part)
            if inner is None:
                return None
            names.update(inner)
    return tuple(sorted(names))

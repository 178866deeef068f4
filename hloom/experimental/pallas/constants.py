"""Arrays that a kernel or an index map uses from outside, instead of taking them as arguments."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...hlo.opcode import Opcode
from ...tracer.arrays.array import Array, as_value
from ...tracer.recording import TracedComputation
from ...tracer.references.refs import Ref
from ...tracer.tracer import Tracer


def constants_of(traced: TracedComputation, function: Any) -> list[Any]:
    """The values that the user's function has from outside: traced values, and arrays among the variables that it uses.
    Arrays that functions of the library make while they are traced are not among these."""
    arrays = [v for v in _used(function) if isinstance(v, Array | np.ndarray) and v.ndim]
    small = [i for i in traced.computation.instructions if i.opcode is Opcode.CONSTANT and i.shape.dimensions]
    values = [*traced.captured, *[as_value(i.attributes.literal.array) for i in small]]
    return [
        v for v in values
        if isinstance(v, Tracer) or (isinstance(v, Array) and any(_is_same(v, a) for a in arrays))
    ]  # fmt: skip


def _is_same(value: Array, other: Any) -> bool:
    if value is other:
        return True
    if value.shape != tuple(other.shape):
        return False
    view = np.asarray(other).astype(value.dtype, copy=False)
    return np.asarray(value).tobytes() == view.tobytes()


def _used(function: Any, depth: int = 3) -> Iterator[Any]:
    """The objects that a function finds in its closure, its defaults and its globals, and those of functions there."""
    if isinstance(function, functools.partial):
        yield from (*function.args, *function.keywords.values())
        function = function.func
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return
    names = vars_of(function)
    cells = [c.cell_contents for c in function.__closure__ or () if _is_filled(c)]
    for value in (*cells, *(function.__defaults__ or ()), *[names[n] for n in code.co_names if n in names]):
        if isinstance(value, Array | np.ndarray | Ref):
            yield value
        elif depth and isinstance(value, types.FunctionType | functools.partial):
            yield from _used(value, depth - 1)


def vars_of(function: Any) -> dict[str, Any]:
    """The global variables of a function."""
    return getattr(function, "__globals__", {})


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True

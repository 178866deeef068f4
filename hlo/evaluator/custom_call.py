"""custom-call: code that is known by name only. The registry has the function (`custom_calls.py`).

A program binds each of its calls once, for a handler of XLA's typed FFI may have a state for each: see `binding`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from ..custom_call_targets.call import Run
from ..custom_calls import bind_custom_call, call_of
from ..element_type import element_type_of
from ..opcode import Opcode
from ..ops.custom_call import CustomCallAttributes
from ..shape import Shape
from ..support.value_tree import leaves_of, value_of
from .table import EVALUATE, Value

BoundCalls: TypeAlias = "dict[tuple[int, tuple[Shape, ...], Shape], tuple[CustomCallAttributes, Run]]"
"""The bound calls of a program, by the identity of their attributes and by their types."""


class _Thread(threading.local):
    bound: BoundCalls | None = None


_thread = _Thread()


@contextmanager
def binding(calls: BoundCalls) -> Iterator[None]:
    """Within the block, calls are looked up in `calls`, and bound there when they are first met."""
    before, _thread.bound = _thread.bound, calls
    try:
        yield
    finally:
        _thread.bound = before


def bound_call(calls: BoundCalls, attributes: CustomCallAttributes, operands: Sequence[Shape], result: Shape) -> Run:
    """The function that computes a call."""
    key = id(attributes), tuple([o.with_default_layout() for o in operands]), result
    if key not in calls:
        calls[key] = attributes, bind_custom_call(call_of(attributes, operands, result))
    return calls[key][1]


@EVALUATE.register(Opcode.CUSTOM_CALL)
def _custom_call(shape: Shape, attributes: CustomCallAttributes, *operands: Value) -> Any:
    calls = _thread.bound
    result = bound_call({} if calls is None else calls, attributes, [_shape_of(o) for o in operands], shape)(*operands)
    # The function may have kept its result, and may change it.
    return value_of(shape, iter([np.array(leaf) for leaf in leaves_of(result)]))


def _shape_of(value: Value) -> Shape:
    if isinstance(value, tuple):
        return Shape.tuple([_shape_of(v) for v in value])
    return Shape.array(element_type_of(value.dtype), value.shape)

"""Errors that programs find while they run: they are remembered and the program goes on; `raise_if_error` raises.

The first error is a code in a mutable array, which is one for the process: compiled programs read and write it as any
other reference. The settings ``jax_error_checking_behavior_nan``, ``_divide`` and ``_oob`` look for errors at each
operation; where they are "ignore", no operation checks for them.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.shape import Shape
from .. import dtypes, recording
from ..arrays.array import Array, as_value
from ..aval import ShapedArray
from ..core import EVAL, Call, Value, bind, current_trace, set_current_trace
from ..errors import OperandError
from ..layers import Layer
from ..ops import compare, full_like, reduce_with, scalar, select
from ..recording import HloTrace
from ..references.refs import Ref, new_ref
from ..settings.context import current_context
from ..source import user_line
from ..tracer import Trace, Tracer

NO_ERROR = np.iinfo(np.uint32).max
_lock = threading.Lock()
_codes: dict[tuple[str, str], int] = {}
"""The number of each message and line."""
_state: list[Ref] = []
"""The reference, once it is needed."""


class JaxValueError(ValueError):
    """An error that a program has found while it ran."""

    is_complete = True


def _reference() -> Ref:
    if not _state:
        with _lock, set_current_trace(EVAL):
            if not _state:
                _state.append(new_ref(Array(ShapedArray((), np.dtype(np.uint32)), np.asarray(NO_ERROR, np.uint32))))
    return _state[0]


def set_error_if(pred: Any, /, msg: str) -> None:
    """Where any element of `pred` is true, and there is no error yet, this is the error. The program goes on.

    pred: an array of booleans, traced or not.
    Raises OperandError, a TypeError, for anything else.
    """
    value: Value = as_value(pred)
    if value.aval.dtype != np.bool_:
        raise OperandError(f"set_error_if needs an array of booleans, not {value.aval.str_short()}", "set_error_if")
    while isinstance(value, Tracer) and (found := value.below()) is not None:
        value = found[0]  # of all elements that are mapped over
    place: Trace = current_trace()
    while place.parent is not None and not isinstance(place, HloTrace):
        place = place.parent
    with set_current_trace(place):
        failed = reduce_with(Opcode.OR, value, scalar(False, np.dtype(bool)), tuple(range(value.aval.ndim)))
        if isinstance(failed, Array) and not failed._view:
            return
        with _lock:
            code = _codes.setdefault((msg, user_line() or ""), len(_codes))
        reference = _reference()
        before = reference.current()
        is_first = bind(Opcode.AND, (compare(before, "EQ", full_like(before, NO_ERROR)), failed))
        reference.replace(select(is_first, scalar(code, np.dtype(np.uint32)), before))


def take_error() -> tuple[str, str] | None:
    """The message and the line of the first error, which is then forgotten; None if there was none.

    Raises ValueError where a function is traced.
    """
    if current_trace() is not EVAL:
        raise ValueError(
            "raise_if_error() should not be called within a traced context, such as within a jitted function.\n"
            f"  at {user_line()}"
        )
    code = exchange_code(NO_ERROR)
    return next((where for where, number in _codes.items() if number == code), None)


def exchange_code(code: int) -> int:
    """Make `code` the error; the one that was."""
    if not _state and code == NO_ERROR:
        return code
    reference = _reference()
    before = int(np.asarray(reference.current()))
    if before != code:
        reference.replace(Array(ShapedArray((), np.dtype(np.uint32)), np.asarray(code, np.uint32)))
    return before


# ---- the checks of the settings


_UNCHECKED = frozenset({Opcode.OPT_BARRIER, Opcode.WHILE, Opcode.CONDITIONAL})
"""Besides movement: ops that make no new NaN, or with operations that are checked themselves."""


def _look(opcode: Opcode, operands: tuple[Value, ...], results: Any) -> None:
    if opcode is Opcode.DIVIDE:
        look_at_divisor(operands[1])
    if opcode not in _UNCHECKED and not has_trait(opcode, Trait.MOVEMENT):
        _look_for_nan(results)


def look_at_divisor(divisor: Value) -> None:
    """Remember a division by zero, if that is an error."""
    if current_context().error_checking_behavior_divide == "raise":
        set_error_if(compare(divisor, "EQ", full_like(divisor, 0)), "Division by zero encountered")


def _look_for_nan(results: Any) -> None:
    if current_context().error_checking_behavior_nan != "raise":
        return
    for value in results if isinstance(results, list) else [results]:
        if dtypes.is_inexact(value.aval.dtype):
            set_error_if(compare(value, "NE", value), "NaN encountered")


class _LookingTrace(HloTrace):
    """Records the checks of the settings with each operation."""

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        result = super().process(opcode, operands, attributes, shape)
        _look(opcode, operands, result)
        return result

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        results = super().process_call(call, operands)
        _look_for_nan(results)
        return results


class LookingLayer(Layer):
    """Checks the results of operations outside of jit at once. Once it is made, programs that are recorded have the
    checks too."""

    def __init__(self) -> None:
        recording.LOOKING[:] = [_LookingTrace]

    def process(self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape) -> Any:
        result = self.below.process(opcode, operands, attributes, shape)
        _look(opcode, operands, result)
        return result

    def process_with_scalar(
        self, opcode: Opcode, x: Array, y: Array, attributes: Any, shape: Shape, aval: ShapedArray
    ) -> Any:
        result = self.below.process_with_scalar(opcode, x, y, attributes, shape, aval)
        _look(opcode, (x, y), result)
        return result

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> Any:
        results = self.below.process_call(call, operands)
        _look_for_nan(results)
        return results

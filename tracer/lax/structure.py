"""Operations that compute nothing: barriers, and values that are constants to differentiation."""

from __future__ import annotations

from typing import TypeVar, cast

from ...hlo.attributes import Composite
from ...hlo.opcode import Opcode
from .. import dtypes, tree
from ..array import as_value
from ..core import Value, bind, bind_call, trace_to_computation

T = TypeVar("T")

_STOP_GRADIENT = Composite("stop_gradient")


def stop_gradient(x: T) -> T:
    """x (a pytree), with a derivative of zero. In HLO a composite call of the identity, which inlining removes."""

    def one(leaf: object) -> Value:
        value = as_value(leaf)
        if not dtypes.is_inexact(value.aval.dtype):
            return value
        computation, _, _ = trace_to_computation(lambda values: values, [value.aval], "stop_gradient")
        return bind_call(computation, [value], _STOP_GRADIENT)[0]

    return cast(T, tree.map(one, x))


def optimization_barrier(operand: T) -> T:
    """The operand (a pytree): no pass moves work across it."""
    return cast(T, tree.map(lambda leaf: bind(Opcode.OPT_BARRIER, (as_value(leaf),)), operand))

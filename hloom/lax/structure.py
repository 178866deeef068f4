"""Operations that compute nothing: barriers, and values that are constants to differentiation."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar, cast

from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.ops.control_flow import Composite
from ..tracer import dtypes, tree
from ..tracer.array import Array, as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind, bind_call, trace_to_computation
from ..tracer.traced import with_avals

T = TypeVar("T")

_STOP_GRADIENT = Composite("stop_gradient")


def stop_gradient(x: T) -> T:
    """x (a pytree), with a derivative of zero. In HLO a composite call of the identity, which inlining removes."""

    def one(leaf: object) -> Value:
        value = as_value(leaf)
        if isinstance(value, Array) or not dtypes.is_inexact(value.aval.dtype):
            return value  # a constant to differentiation as it is
        return with_avals(bind_call(_identity(value.aval), [value], _STOP_GRADIENT), [value.aval])[0]

    return cast(T, tree.map(one, x))


@lru_cache(maxsize=256)
def _identity(aval: ShapedArray) -> HloComputation:
    return trace_to_computation(lambda values: values, [aval], "stop_gradient").computation


def optimization_barrier(operand: T) -> T:
    """The operand (a pytree): no pass moves work across it."""
    return cast(T, tree.map(lambda leaf: bind(Opcode.OPT_BARRIER, (as_value(leaf),)), operand))

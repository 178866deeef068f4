"""Operations that compute nothing: barriers, and values that are constants to differentiation."""

from __future__ import annotations

from typing import TypeVar, cast

from ..autodiff.stopping import stop_gradient
from ..hlo.opcode import Opcode
from ..tracer import tree
from ..tracer.array import as_value
from ..tracer.core import bind

__all__ = [
    "optimization_barrier",
    "stop_gradient",
]

T = TypeVar("T")

def optimization_barrier(operand: T, /) -> T:
    """The operand (a pytree): no pass moves work across it."""
    return cast(T, tree.map(lambda leaf: bind(Opcode.OPT_BARRIER, (as_value(leaf),)), operand))

"""What computes nothing: barriers, values that are constants to differentiation, questions about types."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

from ..autodiff.stopping import stop_gradient
from ..hlo.opcode import Opcode
from ..tracer import dtypes, tree
from ..tracer.array import as_value
from ..tracer.core import bind
from ..tracer.operators import ArrayBase

__all__ = [
    "dtype",
    "optimization_barrier",
    "stop_gradient",
]

T = TypeVar("T")


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype of an array, the one that a number gets, or the one that a type or a name stands for."""
    if isinstance(x, type | str | np.dtype):
        return dtypes.requested_dtype(x, "dtype")
    return dtypes.type_of(x if isinstance(x, ArrayBase | bool | int | float | complex) else as_value(x))[0]


def optimization_barrier(operand: T, /) -> T:
    """The operand (a pytree): no pass moves work across it."""
    return cast(T, tree.map(lambda leaf: bind(Opcode.OPT_BARRIER, (as_value(leaf),)), operand))

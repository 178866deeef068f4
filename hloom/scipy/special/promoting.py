"""Arguments of special functions: numbers of one floating dtype and one shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...numpy.promotion import promote_inexact
from ...tracer import dtypes
from ...tracer.core import Value
from ...tracer.errors import OperandError
from ...tracer.ops import convert
from ...tracer.settings.config import enable_x64


class ComplexOperandError(OperandError, ValueError):
    """A function of real numbers was called on complex ones; JAX raises a ValueError or a TypeError."""


def real(name: str, *args: Any) -> list[Value]:
    """The arguments as values of one floating dtype and one shape; OperandError if they are complex."""
    values = promote_inexact(name, *args)
    if dtypes.is_complex(values[0].aval.dtype):
        first = f" Argument `x` to {name} must be real-valued." if len(args) == 1 else ""
        raise ComplexOperandError(
            f"{name} does not support complex-valued inputs: {values[0].aval.str_short()}.{first}\n  It is a function "
            "of real numbers here, as in JAX.",
            f"{name}_dtypes",
        )
    return values


def in_double(compute: Callable[..., Any], *values: Any) -> Any:
    """`compute` of the values as float64, in their dtype: for sums that narrower types would round away."""
    dtype, weak = values[0].aval.dtype, all(v.aval.weak_type for v in values)
    with enable_x64(True):
        result = compute(*[convert(v, dtypes.float64, False) for v in values])
    return convert(result, dtype, weak)

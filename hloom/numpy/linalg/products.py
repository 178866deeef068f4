"""Products of several matrices and vectors."""

from __future__ import annotations

import operator
from typing import Any

from ... import lax
from ...tracer.array import as_value
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.errors import OperandError, UnsupportedError
from ...tracer.operators import ArrayLike
from ...tracer.source import user_line
from ..dot import matmul
from ..promotion import check_arraylike

__all__ = ["matrix_power", "multi_dot"]


@compound(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Value:
    """A square matrix multiplied n times with itself; n is not negative (that would need an inverse)."""
    check_arraylike("matrix_power", a)
    x = as_value(a)
    count = operator.index(n)
    if count < 0:
        raise UnsupportedError(f"matrix_power: a negative power needs the inverse\n  at {user_line()}")
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        raise OperandError(f"matrix_power: {x.aval.str_short()} is not square\n  at {user_line()}", "matrix_power")
    if count == 0:
        size = x.aval.shape[-1]
        row, column = (lax.broadcasted_iota("int32", (size, size), d) for d in (0, 1))
        unit = lax.convert_element_type(row == column, x.dtype)
        return lax.broadcast_in_dim(unit, x.aval.shape, (x.aval.ndim - 2, x.aval.ndim - 1))
    result: Value | None = None
    while count:
        if count & 1:
            result = x if result is None else matmul(result, x)
        count >>= 1
        if count:
            x = matmul(x, x)
    assert result is not None
    return result


def multi_dot(arrays: Any, *, precision: Any = None) -> Value:
    """The product of several matrices, from left to right."""
    first, *rest = arrays
    for a in rest:
        first = matmul(first, a, precision=precision)
    return first  # type: ignore[no-any-return]

"""Operations on matrices in the last two dimensions of values, in terms of HLO ops.

Derivative rules and `hloom/lax/linalg` are written in them. Other dimensions are batch dimensions, and come first; the
operands of one operation have the same ones. Nothing here promotes dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.opcode import Opcode
from ...hlo.ops.dot import DotAttributes
from ...hlo.ops.linalg import TransposeKind, TriangularSolveAttributes
from ...hlo.ops.movement import IotaAttributes
from .. import dtypes
from ..core import Value, bind
from ..ops import (
    add,
    array_shape,
    broadcast,
    compare,
    conjugate,
    convert,
    is_complex,
    make_complex,
    mul,
    reduce_sum,
    scalar,
    scale,
    select,
    slice_,
    sub,
    transpose,
    unary,
    zeros,
)

NO_TRANSPOSE, TRANSPOSE, ADJOINT = TransposeKind


def sizes(x: Value) -> tuple[int, int]:
    """The numbers of rows and columns."""
    rows, columns = x.aval.shape[-2:]
    return rows, columns


def batch_of(x: Value, core: int = 2) -> tuple[int, ...]:
    """The sizes of the batch dimensions; `core` is the number of the others."""
    return x.aval.shape[: len(x.aval.shape) - core]


# ---- transposes and products


def transposed(x: Value) -> Value:
    """The transposes of the matrices."""
    rank = len(x.aval.shape)
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugated(x: Value) -> Value:
    """The complex conjugate; a real value itself."""
    return conjugate(x) if is_complex(x) else x


def adjoint(x: Value) -> Value:
    """The conjugate transposes of the matrices."""
    return transposed(conjugated(x))


def applied(kind: TransposeKind, x: Value) -> Value:
    """The matrices as `kind` says: as they are, transposed, or conjugated too."""
    if kind is NO_TRANSPOSE:
        return x
    return transposed(x) if kind is TRANSPOSE else adjoint(x)


def matmul(x: Value, y: Value) -> Value:
    """The products of the matrices."""
    rank = len(x.aval.shape)
    batch = tuple(range(rank - 2))
    attributes = DotAttributes(batch, batch, (rank - 1,), (rank - 2,), operand_precision=("highest", "highest"))
    return bind(Opcode.DOT, (x, y), attributes, shape=array_shape(x.aval.dtype, (*x.aval.shape[:-1], y.aval.shape[-1])))


def solve_triangular(
    a: Value,
    b: Value,
    *,
    left: bool = True,
    lower: bool,
    unit: bool = False,
    kind: TransposeKind = NO_TRANSPOSE,
) -> Value:
    """x of op(a) x = b, or of x op(a) = b if not `left`."""
    return bind(Opcode.TRIANGULAR_SOLVE, (a, b), TriangularSolveAttributes(left, lower, unit, kind))


# ---- parts of matrices


def compare_places(dimensions: Sequence[int], direction: str, offset: int = 0) -> Value:
    """For matrices of these dimensions, true where column minus row is LT, LE, EQ, GE, ... `offset`."""
    size = tuple(dimensions[-2:])
    integers = array_shape(dtypes.int32, size)
    row, column = (bind(Opcode.IOTA, (), IotaAttributes(d), shape=integers) for d in (0, 1))
    limit = broadcast(scalar(offset, dtypes.int32), size, ())
    found = compare(sub(column, row), direction, limit)
    return broadcast(found, dimensions, (len(dimensions) - 2, len(dimensions) - 1))


def places(dimensions: Sequence[int]) -> Value:
    """Numbers that count along the last dimension. int32."""
    integers = array_shape(dtypes.int32, dimensions)
    return bind(Opcode.IOTA, (), IotaAttributes(len(dimensions) - 1), shape=integers)


def lower_part(x: Value, offset: int = 0) -> Value:
    """The elements on and below the diagonal `offset`, zeros above."""
    return select(compare_places(x.aval.shape, "LE", offset), x, zeros(x.aval))


def upper_part(x: Value, offset: int = 0) -> Value:
    """The elements on and above the diagonal `offset`, zeros below."""
    return select(compare_places(x.aval.shape, "GE", offset), x, zeros(x.aval))


def triangle(x: Value, lower: bool, strict: bool = False) -> Value:
    """One triangle, with the diagonal unless `strict`; zeros elsewhere."""
    return lower_part(x, -int(strict)) if lower else upper_part(x, int(strict))


def identity(dimensions: Sequence[int], dtype: np.dtype[Any]) -> Value:
    """Matrices of these dimensions, with ones on the diagonal and zeros off it."""
    return convert(compare_places(dimensions, "EQ"), dtype, False)


def diagonal(x: Value) -> Value:
    """The elements [..., i, i]."""
    rank, least = len(x.aval.shape), min(sizes(x))
    x = slice_(x, (0,) * rank, (*batch_of(x), least, least))
    on_diagonal = select(compare_places(x.aval.shape, "EQ"), x, zeros(x.aval))
    return reduce_sum(on_diagonal, (rank - 1,))


def with_diagonal(x: Value, values: Value) -> Value:
    """Square matrices with other diagonals."""
    rank = len(x.aval.shape)
    return select(compare_places(x.aval.shape, "EQ"), broadcast(values, x.aval.shape, tuple(range(rank - 1))), x)


def rows_scaled(x: Value, factors: Value) -> Value:
    """Row i times `factors[..., i]`."""
    rank = len(x.aval.shape)
    return mul(x, broadcast(factors, x.aval.shape, tuple(range(rank - 1))))


def columns_scaled(x: Value, factors: Value) -> Value:
    """Column j times `factors[..., j]`."""
    rank = len(x.aval.shape)
    return mul(x, broadcast(factors, x.aval.shape, (*range(rank - 2), rank - 1)))


def real_part(x: Value) -> Value:
    """The real part; a real value itself."""
    return unary(Opcode.REAL, x) if is_complex(x) else x


def as_complex(x: Value, dtype: np.dtype[Any]) -> Value:
    """A value as one of `dtype`, which is x's dtype or the complex one of its precision."""
    if x.aval.dtype is dtype or dtype.kind != "c":
        return x
    return make_complex(x, zeros(x.aval))


def hermitian(x: Value, lower: bool) -> Value:
    """The Hermitian matrix with one triangle given by x. The imaginary part of x's diagonal is ignored."""
    strict = triangle(x, lower, strict=True)
    on_diagonal = select(compare_places(x.aval.shape, "EQ"), as_complex(real_part(x), x.aval.dtype), zeros(x.aval))
    return add(add(strict, adjoint(strict)), on_diagonal)


def symmetric(x: Value, lower: bool) -> Value:
    """The symmetric matrix with one triangle given by x."""
    return add(triangle(x, lower), transposed(triangle(x, lower, strict=True)))


def symmetrized(x: Value) -> Value:
    """The mean of x and its adjoint."""
    return scale(add(x, adjoint(x)), 0.5)

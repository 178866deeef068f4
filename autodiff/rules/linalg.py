"""Derivatives of factorisations and Fourier transforms that HLO has opcodes for.

Those that are custom calls of LAPACK are primitives, which have their rules in `hloom/lax/linalg/`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallAttributes
from ...hlo.ops.linalg import CholeskyAttributes, FftAttributes, FftType, TriangularSolveAttributes
from ...hlo.ops.movement import IotaAttributes
from ...hlo.shape import Shape
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    ADJOINT,
    NO_TRANSPOSE,
    applied,
    compare_places,
    conjugated,
    hermitian,
    matmul,
    solve_triangular,
    triangle,
)
from ...tracer.arrays.matrices import (
    TRANSPOSE as TRANSPOSED,
)
from ...tracer.core import Value, bind
from ...tracer.ops import add, array_shape, compare, conjugate, full_like, mul, neg, scale, select, sub, zeros
from ..batches import Axis, all_with_batch
from ..tangents import Linear, Operand, Tangent, Zero, instantiate
from .declared import bind_batch, by_elements
from .linear import linear
from .tables import BATCH, JVP, TRANSPOSE, not_linear

_O = Opcode

not_linear(_O.CHOLESKY)
linear(_O.FFT)


@JVP.register(_O.CHOLESKY)
def _cholesky_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CholeskyAttributes, shape: Shape
) -> Any:
    """From A = L L^H: with W = L^-1 dA L^-H, dL is L times the lower triangle of W, its diagonal halved.

    A = U^H U in the same way. Only the triangle of dA is used that the op reads.
    """
    factor = bind(_O.CHOLESKY, primals, attributes, shape=shape)
    moved, lower = hermitian(instantiate(tangents[0]), attributes.lower), attributes.lower
    w = solve_triangular(factor, moved, lower=lower, kind=NO_TRANSPOSE if lower else ADJOINT)
    w = solve_triangular(factor, w, left=False, lower=lower, kind=ADJOINT if lower else NO_TRANSPOSE)
    strict = triangle(w, lower, strict=True)
    half = add(strict, select(compare_places(shape.dimensions, "EQ"), scale(w, 0.5), zeros(w.aval)))
    return factor, matmul(factor, half) if lower else matmul(half, factor)


@JVP.register(_O.TRIANGULAR_SOLVE)
def _triangular_solve_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: TriangularSolveAttributes, shape: Shape
) -> Any:
    """From op(a) x = b: dx solves op(a) dx = db - op(da) x. Elements of a that the op does not read do not move x."""
    a, b = primals
    da, db = tangents
    x = bind(_O.TRIANGULAR_SOLVE, (a, b), attributes, shape=shape)
    right: Value | None = None if isinstance(db, Zero) else db
    if not isinstance(da, Zero):
        moved = applied(attributes.transpose_a, triangle(da, attributes.lower, strict=attributes.unit_diagonal))
        product = matmul(moved, x) if attributes.left_side else matmul(x, moved)
        right = neg(product) if right is None else sub(right, product)
    assert right is not None, "a tangent moves"
    return x, bind(_O.TRIANGULAR_SOLVE, (a, right), attributes, shape=shape)


_TRANSPOSE_OF = {NO_TRANSPOSE: TRANSPOSED, TRANSPOSED: NO_TRANSPOSE, ADJOINT: NO_TRANSPOSE}


@TRANSPOSE.register(_O.TRIANGULAR_SOLVE)
def _triangular_solve_transpose(
    ct: Value, operands: Sequence[Operand], attributes: TriangularSolveAttributes, shape: Shape
) -> Any:
    """The solve with the transpose of op(a). The transpose of the adjoint is the conjugate."""
    a, _ = operands
    if isinstance(a, Linear):
        raise TypeError("triangular-solve is not linear in its matrix and cannot be transposed")
    if attributes.transpose_a is ADJOINT:
        a = conjugated(a)
    backward = replace(attributes, transpose_a=_TRANSPOSE_OF[attributes.transpose_a])
    return [None, bind(_O.TRIANGULAR_SOLVE, (a, ct), backward, shape=shape)]


@TRANSPOSE.register(_O.FFT)
def _fft_transpose(ct: Value, operands: Sequence[Operand], attributes: FftAttributes, shape: Shape) -> Any:
    """FFT and IFFT are symmetric matrices. RFFT and IRFFT are each other's, up to conjugation and factors.

    Of a real transform, half of the frequencies is left out, since they are conjugates of others. IRFFT counts those
    that have such a partner twice, so before it they are halved, and after RFFT they are doubled.
    """
    kind, lengths = attributes.fft_type, attributes.fft_length
    (operand,) = operands
    assert isinstance(operand, Linear), "a transform is linear in its operand"
    if kind in (FftType.FFT, FftType.IFFT):
        return [bind(_O.FFT, (ct,), attributes, shape=shape)]
    if 0 in (*operand.aval.shape, *shape.dimensions):
        return [zeros(operand.aval)]
    count = math.prod(lengths)
    if kind is FftType.RFFT:
        halved = mul(conjugate(ct), _weights(ct, lengths[-1], 0.5 * count, count))
        back = replace(attributes, fft_type=FftType.IRFFT)
        return [bind(_O.FFT, (halved,), back, shape=array_shape(operand.aval.dtype, operand.aval.shape))]
    forth = replace(attributes, fft_type=FftType.RFFT)
    found = bind(_O.FFT, (ct,), forth, shape=array_shape(operand.aval.dtype, operand.aval.shape))
    return [mul(conjugate(found), _weights(found, lengths[-1], 2 / count, 1 / count))]


def _weights(like: Value, length: int, with_partner: float, alone: float) -> Value:
    """A number for each frequency of a real transform to `length` values: frequency 0, and length / 2 where that is a
    whole number, are their own partners."""
    dimensions = like.aval.shape
    last = len(dimensions) - 1
    place = bind(_O.IOTA, (), IotaAttributes(last), shape=array_shape(dtypes.int32, dimensions))
    is_own = compare(place, "EQ", full_like(place, 0))
    if length % 2 == 0:
        is_own = bind(_O.OR, (is_own, compare(place, "EQ", full_like(place, dimensions[last] - 1))))
    return select(is_own, full_like(like, alone), full_like(like, with_partner))


@BATCH.register(_O.CUSTOM_CALL)
def _custom_call_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: CustomCallAttributes, shape: Shape
) -> Any:
    """LAPACK's targets take batches in front of the dimensions that they work on; others run once for each element.

    A batch has no layout constraints: the constraints for one element have another rank, and LAPACK's targets take any
    layout.
    """
    calls = import_module("...hlo.custom_calls", __package__)  # most programs have no custom call
    if calls.is_batched_target(attributes.custom_call_target):
        attributes = replace(attributes, operand_layout_constraints=None)
        return bind_batch(axis, _O.CUSTOM_CALL, all_with_batch(axis, operands, batched), attributes, shape)
    return by_elements(_O.CUSTOM_CALL, axis, operands, batched, attributes, shape)

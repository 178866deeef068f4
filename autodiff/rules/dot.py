"""Derivatives of dot: bilinear, so each side's derivative is a dot with the other side. A batch of dots is a dot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...hlo.opcode import Opcode
from ...hlo.ops.dot import DotAttributes
from ...hlo.shape import Shape
from ...tracer.core import Value, bind
from ...tracer.ops import array_shape, convert, transpose
from ..batches import Axis
from ..tangents import Linear, Operand
from .declared import raised
from .linear import bilinear, in_wider_type
from .tables import BATCH, TRANSPOSE

_O = Opcode

bilinear(_O.DOT)


@TRANSPOSE.register(_O.DOT)
def _dot_transpose(ct: Value, operands: Sequence[Operand], attributes: DotAttributes, shape: Shape) -> Any:
    """A dot of the cotangent and the other side."""
    lhs, rhs = operands
    if isinstance(lhs, Linear):
        if isinstance(rhs, Linear):
            raise TypeError("dot of two values that depend on the tangents is not linear and cannot be transposed")
        return [_toward(lhs, rhs, ct, attributes, is_lhs=True), None]
    assert isinstance(rhs, Linear)
    return [None, _toward(rhs, lhs, ct, attributes, is_lhs=False)]


def _toward(operand: Linear, other: Value, ct: Value, attributes: DotAttributes, *, is_lhs: bool) -> Value:
    """The cotangent of `operand`: `ct` with `other`, contracted over the free dimensions of `other`.

    The two orders of the factors give two orders of the result's dimensions. One is often the operand's order, so that
    no transpose is needed: for y = x @ w, ct_w is dot(x, ct) and ct_x is dot(ct, w), neither followed by a transpose.
    """
    a = attributes
    if is_lhs:
        my_batch, my_contracting, its_batch, its_contracting = (
            a.lhs_batch_dims, a.lhs_contracting_dims, a.rhs_batch_dims, a.rhs_contracting_dims,
        )  # fmt: skip
    else:
        my_batch, my_contracting, its_batch, its_contracting = (
            a.rhs_batch_dims, a.rhs_contracting_dims, a.lhs_batch_dims, a.lhs_contracting_dims,
        )  # fmt: skip
    my_free = _free(len(operand.aval.shape), my_batch, my_contracting)
    its_free = _free(len(other.aval.shape), its_batch, its_contracting)
    # ct's dimensions: batch, then lhs's free ones, then rhs's free ones.
    ct_batch = tuple(range(len(my_batch)))
    its_start = len(my_batch) + (len(my_free) if is_lhs else 0)
    its_in_ct = tuple(range(its_start, its_start + len(its_free)))

    # Only the contracting dimensions of `other` remain, in its order; name each by its dimension in `operand`.
    partner = dict(zip(its_contracting, my_contracting, strict=True))
    from_other = [partner[d] for d in sorted(its_contracting)]
    orders = {
        "ct first": [*my_batch, *my_free, *from_other],
        "other first": [*my_batch, *from_other, *my_free],
    }
    wanted = list(range(len(operand.aval.shape)))
    order = "other first" if orders["other first"] == wanted else "ct first"

    ct, other = in_wider_type(ct, other)
    if order == "ct first":
        pair, batch, contracting = (ct, other), (ct_batch, its_batch), (its_in_ct, its_free)
    else:
        pair, batch, contracting = (other, ct), (its_batch, ct_batch), (its_free, its_in_ct)
    new = replace(
        a,
        lhs_batch_dims=batch[0],
        rhs_batch_dims=batch[1],
        lhs_contracting_dims=contracting[0],
        rhs_contracting_dims=contracting[1],
    )
    sizes = [operand.aval.shape[d] for d in orders[order]]
    result = bind(_O.DOT, pair, new, shape=array_shape(ct.aval.dtype, sizes))
    result = transpose(result, [orders[order].index(d) for d in wanted])
    return convert(result, operand.aval.dtype)


def _free(rank: int, batch: Sequence[int], contracting: Sequence[int]) -> tuple[int, ...]:
    return tuple(d for d in range(rank) if d not in batch and d not in contracting)


@BATCH.register(_O.DOT)
def _dot_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: DotAttributes, shape: Shape
) -> Any:
    """The batch is a batch dimension if both sides have it, else a free dimension of the side that has it.

    A free batch dimension comes after the batch dimensions; on the right side, it comes after the free ones of the
    left. If nothing else is free on the right, the sides change places, which puts the batch in front.
    """
    lhs, rhs = operands
    a = attributes
    on_lhs, on_rhs = batched
    batch_dims, lhs_free = len(a.lhs_batch_dims), _free(
        lhs.aval.ndim - on_lhs, a.lhs_batch_dims, a.lhs_contracting_dims
    )
    if on_rhs and not on_lhs and not batch_dims:
        rhs_free = _free(rhs.aval.ndim - 1, a.rhs_batch_dims, a.rhs_contracting_dims)
        if lhs_free and not rhs_free:
            turned = replace(
                a,
                lhs_contracting_dims=a.rhs_contracting_dims,
                rhs_contracting_dims=a.lhs_contracting_dims,
                operand_precision=a.operand_precision[::-1],
            )
            return _dot_batch(axis, (rhs, lhs), (True, False), turned, shape)
    new = replace(
        a,
        lhs_batch_dims=raised(a.lhs_batch_dims, on_lhs),
        rhs_batch_dims=raised(a.rhs_batch_dims, on_rhs),
        lhs_contracting_dims=raised(a.lhs_contracting_dims, on_lhs),
        rhs_contracting_dims=raised(a.rhs_contracting_dims, on_rhs),
    )
    if on_lhs and on_rhs:
        new = replace(new, lhs_batch_dims=(0, *new.lhs_batch_dims), rhs_batch_dims=(0, *new.rhs_batch_dims))
        place = 0
    else:
        place = batch_dims if on_lhs else batch_dims + len(lhs_free)
    sizes = list(shape.dimensions)
    sizes.insert(place, axis.size)
    result = bind(_O.DOT, (lhs, rhs), new, shape=Shape.array(shape.element, sizes))
    return transpose(result, [place, *(d for d in range(len(sizes)) if d != place)]), True

"""Rules of the algebraic simplifier for reductions and products. As in arithmetic.py, a rule returns the
replacement of an instruction, or None.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...builder import make_instruction, make_tuple
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.reduce import ReduceAttributes
from ..map_inliner import apply_to_arrays
from ..patterns import (
    broadcast,
    is_splat,
    make_splat,
    reducer_identity,
    reducer_opcode,
    reshape,
    splat_literal,
    splat_value,
    transpose,
)
from ..rules import rule

Instruction = HloInstruction


def reduce_of_nothing(i: Instruction) -> Instruction | None:
    """A reduction of arrays without elements is the init values."""
    count = len(i.operands) // 2
    if i.operands[0].shape.num_elements:
        return None
    shapes = [i.shape] if i.shape.is_array else list(i.shape.elements)
    results = [broadcast(init, shape, ()) for init, shape in zip(i.operands[count:], shapes, strict=True)]
    return results[0] if i.shape.is_array else make_tuple(results)


def reduce_of_one(i: Instruction) -> Instruction | None:
    """A reduction over no dimension, or over such of size 1, applies the reducer once to each element: the reducer's
    own ops on whole arrays. (Not just the element: sum of -0.0 from 0.0 is 0.0.)"""
    count = len(i.operands) // 2
    arrays = i.operands[:count]
    if any(arrays[0].shape.dimensions[d] != 1 for d in i.attributes.dimensions):
        return None
    sizes = tuple(s for d, s in enumerate(arrays[0].shape.dimensions) if d not in i.attributes.dimensions)
    elements = [reshape(a, sizes) for a in arrays]
    inits = [broadcast(init, a.shape, ()) for init, a in zip(i.operands[count:], elements, strict=True)]
    return apply_to_arrays(i.attributes.to_apply, (*inits, *elements), sizes)


def reduce_of_reduce(i: Instruction) -> Instruction | None:
    """Two reductions with the same simple reducer, the inner one (which uses its init value several times) from its
    neutral element, are one: reductions may be done in any order, also of floats. 0.0 is neutral for sums that do not
    end in -0.0."""
    if len(i.operands) != 2:
        return None
    x, init = i.operands
    opcode = reducer_opcode(i.attributes.to_apply)
    if x.opcode is not Opcode.REDUCE or len(x.operands) != 2 or opcode is None:
        return None
    source, inner_init = x.operands
    if reducer_opcode(x.attributes.to_apply) is not opcode or not _is_neutral(opcode, inner_init):
        return None
    if opcode is Opcode.ADD and init.shape.element.is_inexact and (splat_literal(init) is None or is_splat(init, -0.0)):
        return None
    kept = [d for d in range(source.shape.rank) if d not in x.attributes.dimensions]
    dimensions = sorted((*x.attributes.dimensions, *(kept[d] for d in i.attributes.dimensions)))
    return make_instruction(Opcode.REDUCE, (source, init), replace(x.attributes, dimensions=tuple(dimensions)))


def _is_neutral(opcode: Opcode, init: Instruction) -> bool:
    value = splat_value(init)
    if value is None or init.shape.element.is_complex:
        return False
    return bool(np.asarray(value) == reducer_identity(opcode, init.shape.element))


def reduce_of_transpose(i: Instruction) -> Instruction | None:
    """A reduction of a transpose reduces the operand; the array to transpose is then smaller."""
    if len(i.operands) != 2 or i.operands[0].opcode is not Opcode.TRANSPOSE:
        return None
    x, init = i.operands
    order = x.attributes.dimensions
    dimensions = tuple(sorted(order[d] for d in i.attributes.dimensions))
    reduced = make_instruction(
        Opcode.REDUCE, (x.operands[0], init), ReduceAttributes(dimensions, i.attributes.to_apply)
    )
    kept = [order[d] for d in range(len(order)) if d not in i.attributes.dimensions]
    places = sorted(kept)
    return transpose(reduced, [places.index(d) for d in kept])


def reduce_in_order(i: Instruction) -> Instruction | None:
    """The order in which reduced dimensions are listed does not matter: ascending."""
    dimensions = i.attributes.dimensions
    if dimensions == tuple(sorted(dimensions)):
        return None
    return make_instruction(Opcode.REDUCE, i.operands, replace(i.attributes, dimensions=tuple(sorted(dimensions))))


def dot_of_nothing(i: Instruction) -> Instruction | None:
    """A sum of no products is 0."""
    lhs = i.operands[0]
    if any(lhs.shape.dimensions[d] == 0 for d in i.attributes.lhs_contracting_dims):
        return make_splat(0, i.shape)
    return None


def dot_of_transpose(i: Instruction) -> Instruction | None:
    """A dot of transposed operands names other dimensions of the operands instead, if that keeps the order of their
    free dimensions, which is the result's. The same sums of the same products."""
    a = i.attributes
    lhs = _untransposed(i.operands[0], a.lhs_batch_dims, a.lhs_contracting_dims)
    rhs = _untransposed(i.operands[1], a.rhs_batch_dims, a.rhs_contracting_dims)
    if lhs is None and rhs is None:
        return None
    left, lhs_batch, lhs_contracting = lhs or (i.operands[0], a.lhs_batch_dims, a.lhs_contracting_dims)
    right, rhs_batch, rhs_contracting = rhs or (i.operands[1], a.rhs_batch_dims, a.rhs_contracting_dims)
    attributes = replace(
        a,
        lhs_batch_dims=lhs_batch,
        rhs_batch_dims=rhs_batch,
        lhs_contracting_dims=lhs_contracting,
        rhs_contracting_dims=rhs_contracting,
    )
    return make_instruction(Opcode.DOT, (left, right), attributes, i.shape)


def _untransposed(
    operand: Instruction, batch: tuple[int, ...], contracting: tuple[int, ...]
) -> tuple[Instruction, tuple[int, ...], tuple[int, ...]] | None:
    if operand.opcode is not Opcode.TRANSPOSE:
        return None
    order = operand.attributes.dimensions
    free = [order[d] for d in range(len(order)) if d not in batch and d not in contracting]
    if free != sorted(free):
        return None
    return operand.operands[0], tuple(order[d] for d in batch), tuple(order[d] for d in contracting)


def transpose_of_dot(i: Instruction) -> Instruction | None:
    """transpose(dot(a, b)) = dot(b, a) where the transpose puts b's free dimensions before a's, batches first."""
    (x,) = i.operands
    if x.opcode is not Opcode.DOT:
        return None
    lhs, rhs = x.operands
    a = x.attributes
    batches = len(a.lhs_batch_dims)
    lhs_free = lhs.shape.rank - batches - len(a.lhs_contracting_dims)
    wanted = (*range(batches), *range(batches + lhs_free, x.shape.rank), *range(batches, batches + lhs_free))
    if i.attributes.dimensions != wanted:
        return None
    attributes = replace(
        a,
        lhs_batch_dims=a.rhs_batch_dims,
        rhs_batch_dims=a.lhs_batch_dims,
        lhs_contracting_dims=a.rhs_contracting_dims,
        rhs_contracting_dims=a.lhs_contracting_dims,
        operand_precision=(a.operand_precision[1], a.operand_precision[0]),
    )
    return make_instruction(Opcode.DOT, (rhs, lhs), attributes, i.shape)


_O = Opcode

REDUCE_DOT_RULES = (
    rule(reduce_of_nothing, _O.REDUCE),
    rule(reduce_of_one, _O.REDUCE),
    rule(reduce_of_reduce, _O.REDUCE, operands={_O.REDUCE}),
    rule(reduce_of_transpose, _O.REDUCE, operands={_O.TRANSPOSE}),
    rule(reduce_in_order, _O.REDUCE),
    rule(dot_of_nothing, _O.DOT),
    rule(dot_of_transpose, _O.DOT, operands={_O.TRANSPOSE}),
    rule(transpose_of_dot, _O.TRANSPOSE, operands={_O.DOT}),
)
"""In the order in which they are tried."""

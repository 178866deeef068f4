"""Expansions: dot into types that BLAS computes, integer dots into sums, ragged-dot into dots of masked arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...builder import make_constant, make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.dot import DotAttributes, RaggedDotAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import BroadcastAttributes, IotaAttributes
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ..patterns import broadcast, convert, make_splat, reshape, transpose
from ..simplify.reducers import binary_reducer
from .small_types import wider_type


def computed_type(dot: HloInstruction) -> ElementType:
    """The type of a dot's products and sums. If operand or result is a float or complex: one that BLAS has and that has
    the values of all. Otherwise the result's integer type, as integers wrap around, but at least a byte."""
    operands = [o.shape.element for o in dot.operands[:2]]
    types = [*operands, dot.shape.element]
    inexact = [t for t in types if t.is_inexact]
    if inexact:
        is_double = any(t.real is ElementType.F64 for t in inexact) or dot.attributes.algorithm == "dot_f64_f64_f64"
        if any(t.is_complex for t in inexact):
            return ElementType.C128 if is_double else ElementType.C64
        return ElementType.F64 if is_double else ElementType.F32
    computed = dot.shape.element
    if not computed.is_integral:
        computed = max(operands, key=lambda t: t.bit_width)
    return wider_type(computed) if computed.is_small else computed


def dot_in_one_type(dot: HloInstruction) -> HloInstruction | None:
    """Converts the operands to the type in which the product is computed, and the result from it. Source: XLA's operand
    upcaster and result caster."""
    computed = computed_type(dot)
    if all(o.shape.element is computed for o in (*dot.operands, dot)):
        return None
    operands = [convert(o, computed) for o in dot.operands]
    shape = Shape.array(computed, dot.shape.dimensions)
    return convert(make_instruction(Opcode.DOT, operands, dot.attributes, shape), dot.shape.element)


def dot_of_integers(dot: HloInstruction) -> HloInstruction | None:
    """Integers (and pred): broadcast, multiply, and sum over the contracting dimensions.

    The dimensions are ordered batch, lhs free, contracting, rhs free, so that the loops run along rows of rhs. If one
    operand has batch and contracting dimensions only, as a vector has, and the free dimensions of the other are in the
    order of the result, they stay in the other's order: the sum goes along rows of a matrix, or adds them.
    """
    result = dot.shape.element
    if result.is_inexact:
        return None
    attributes: DotAttributes = dot.attributes
    lhs, rhs = (convert(o, result) for o in dot.operands)
    lhs_free = _free(lhs, attributes.lhs_batch_dims, attributes.lhs_contracting_dims)
    rhs_free = _free(rhs, attributes.rhs_batch_dims, attributes.rhs_contracting_dims)
    batch, contracting = len(attributes.lhs_batch_dims), len(attributes.lhs_contracting_dims)
    order = [(lhs, d) for d in (*attributes.lhs_batch_dims, *lhs_free, *attributes.lhs_contracting_dims)]
    order += [(rhs, d) for d in rhs_free]
    sizes = [o.shape.dimensions[d] for o, d in order]
    first_contracting = batch + len(lhs_free)
    lhs_place = {d: k for k, (o, d) in enumerate(order[: first_contracting + contracting])}
    rhs_place = {d: k for k, d in enumerate(attributes.rhs_batch_dims)}
    rhs_place |= {d: first_contracting + k for k, d in enumerate(attributes.rhs_contracting_dims)}
    rhs_place |= {d: first_contracting + contracting + k for k, d in enumerate(rhs_free)}
    dimensions = tuple(range(first_contracting, first_contracting + contracting))
    if not (lhs_free and rhs_free):
        whole, place = (rhs, rhs_place) if rhs_free else (lhs, lhs_place)
        stored = [place[d] for d in range(whole.shape.rank)]
        kept = [k for k in stored if k not in dimensions]
        if kept == sorted(kept):
            renumbered = {old: new for new, old in enumerate(stored)}
            lhs_place, rhs_place = ({d: renumbered[k] for d, k in p.items()} for p in (lhs_place, rhs_place))
            sizes = list(whole.shape.dimensions)
            dimensions = tuple(sorted(renumbered[k] for k in dimensions))
    product = make_instruction(
        Opcode.AND if result is ElementType.PRED else Opcode.MULTIPLY,
        (_spread(lhs, lhs_place, sizes), _spread(rhs, rhs_place, sizes)),
    )
    opcode = Opcode.OR if result is ElementType.PRED else Opcode.ADD
    zero = make_constant(np.zeros((), result.dtype))
    return make_instruction(
        Opcode.REDUCE, (product, zero), ReduceAttributes(dimensions, binary_reducer(opcode, result))
    )


def _free(operand: HloInstruction, batch: Sequence[int], contracting: Sequence[int]) -> list[int]:
    return [d for d in range(operand.shape.rank) if d not in batch and d not in contracting]


def _spread(operand: HloInstruction, place: dict[int, int], sizes: list[int]) -> HloInstruction:
    """Broadcast with dimension d of the operand at `place[d]`, transposed before if the order differs."""
    from_place = sorted(range(operand.shape.rank), key=place.__getitem__)
    if from_place != list(range(operand.shape.rank)):
        operand = transpose(operand, from_place)
    shape = Shape.array(operand.shape.element, sizes)
    attributes = BroadcastAttributes(tuple(sorted(place.values())))
    return make_instruction(Opcode.BROADCAST, (operand,), attributes, shape)


def ragged_dot(instruction: HloInstruction) -> HloInstruction:
    """A dot of the lhs copied once for each group, with zeros outside of its part of the ragged dimension. If the
    ragged dimension is free, the groups are contracted with the rhs's; if it is contracted, they are a dimension of the
    result; if it is a batch dimension, groups make no difference. Source: XLA's RaggedDotRewriter."""
    lhs, rhs, group_sizes = instruction.operands
    attributes: RaggedDotAttributes = instruction.attributes
    dot, (ragged,) = attributes.dot, attributes.lhs_ragged_dims
    if ragged in dot.lhs_batch_dims:
        return make_instruction(Opcode.DOT, (lhs, rhs), dot, instruction.shape)
    masked = _masked(lhs, group_sizes, ragged, ragged_prefix(attributes, lhs.shape.rank))
    # The groups are dimension 0 of `masked`.
    lhs_batch = tuple(d + 1 for d in dot.lhs_batch_dims)
    lhs_contracting = tuple(d + 1 for d in dot.lhs_contracting_dims)
    if ragged not in dot.lhs_contracting_dims:
        over_groups = replace(
            dot,
            lhs_batch_dims=lhs_batch,
            lhs_contracting_dims=(0, *lhs_contracting),
            rhs_contracting_dims=(*attributes.rhs_group_dims, *dot.rhs_contracting_dims),
        )
        return make_instruction(Opcode.DOT, (masked, rhs), over_groups, instruction.shape)
    grouped = replace(dot, lhs_batch_dims=lhs_batch, lhs_contracting_dims=lhs_contracting)
    groups, *others = instruction.shape.dimensions
    batches = len(lhs_batch)
    sizes = (*others[:batches], groups, *others[batches:])
    product = make_instruction(
        Opcode.DOT, (masked, rhs), grouped, Shape.array(instruction.shape.element, sizes)
    )
    return transpose(product, (batches, *range(batches), *range(batches + 1, len(sizes))))


def ragged_prefix(attributes: RaggedDotAttributes, rank: int) -> tuple[int, ...]:
    """The lhs dimensions that group sizes may vary along: batch dimensions, then dimensions of the ragged dimension's
    kind (contracting, or free) before it."""
    dot, ragged = attributes.dot, attributes.lhs_ragged_dims[0]
    if ragged in dot.lhs_batch_dims:
        return dot.lhs_batch_dims[: dot.lhs_batch_dims.index(ragged)]
    if ragged in dot.lhs_contracting_dims:
        return (*dot.lhs_batch_dims, *dot.lhs_contracting_dims[: dot.lhs_contracting_dims.index(ragged)])
    free = [d for d in range(rank) if d not in dot.lhs_batch_dims and d not in dot.lhs_contracting_dims]
    return (*dot.lhs_batch_dims, *free[: free.index(ragged)])


def _masked(lhs: HloInstruction, group_sizes: HloInstruction, ragged: int, prefix: tuple[int, ...]) -> HloInstruction:
    """One copy of the lhs for each group (dimension 0), zero where the index along `ragged` is not in the group.

    Bounds of groups are s64, so that neither a sum of sizes nor an index wraps in a narrow type.
    """
    rank, index = group_sizes.shape.rank, ElementType.S64
    group_sizes = convert(group_sizes, index)
    groups = group_sizes.shape.dimensions[-1]
    prefix = prefix if rank > 1 else ()
    # ends[.., g] is the sum of the sizes up to g: sum over h <= g in square arrays [.., h, g].
    square = Shape.array(index, (*group_sizes.shape.dimensions, groups))
    h, g = (make_instruction(Opcode.IOTA, (), IotaAttributes(d), square) for d in (rank - 1, rank))
    counts = make_instruction(Opcode.COMPARE, (h, g), CompareAttributes(ComparisonDirection.LE))
    spread = broadcast(group_sizes, square, tuple(range(rank)))
    zero = make_constant(index.dtype.type(0))
    counted = make_instruction(Opcode.SELECT, (counts, spread, make_splat(0, square)))
    attributes = ReduceAttributes((rank - 1,), binary_reducer(Opcode.ADD, index))
    ends = make_instruction(Opcode.REDUCE, (counted, zero), attributes)
    starts = make_instruction(Opcode.SUBTRACT, (ends, group_sizes))
    full = Shape.array(index, (groups, *lhs.shape.dimensions))
    places = make_instruction(Opcode.IOTA, (), IotaAttributes(ragged + 1), full)

    def everywhere(bounds: HloInstruction) -> HloInstruction:
        in_front = transpose(bounds, (rank - 1, *range(rank - 1)))
        order = sorted(range(len(prefix)), key=prefix.__getitem__)
        in_order = transpose(in_front, (0, *(1 + k for k in order)))
        return broadcast(in_order, full, (0, *(prefix[k] + 1 for k in order)))

    after = make_instruction(
        Opcode.COMPARE, (places, everywhere(starts)), CompareAttributes(ComparisonDirection.GE)
    )
    before = make_instruction(Opcode.COMPARE, (places, everywhere(ends)), CompareAttributes(ComparisonDirection.LT))
    inside = make_instruction(Opcode.AND, (after, before))
    copies = broadcast(lhs, Shape.array(lhs.shape.element, full.dimensions), tuple(range(1, full.rank)))
    return make_instruction(Opcode.SELECT, (inside, copies, make_splat(0, copies.shape)))


def scaled_dot(instruction: HloInstruction) -> HloInstruction:
    """A dot of the operands times their scales, in f32 (f64 for such results). Source: XLA's ScaledDotRewriter, which
    multiplies in bf16."""
    wide = ElementType.F64 if instruction.shape.element is ElementType.F64 else ElementType.F32
    lhs, rhs, lhs_scale, rhs_scale = (convert(o, wide) for o in instruction.operands)
    products = [
        make_instruction(Opcode.MULTIPLY, (operand, _in_blocks(scale, operand.shape.dimensions)))
        for operand, scale in ((lhs, lhs_scale), (rhs, rhs_scale))
    ]
    return make_instruction(Opcode.DOT, products, instruction.attributes, instruction.shape)


def _in_blocks(scale: HloInstruction, sizes: Sequence[int]) -> HloInstruction:
    """Each element of `scale`, repeated over its block."""
    pairs = [n for few, many in zip(scale.shape.dimensions, sizes, strict=True) for n in (few, many // max(few, 1))]
    shape = Shape.array(scale.shape.element, pairs)
    return reshape(broadcast(scale, shape, tuple(range(0, len(pairs), 2))), sizes)

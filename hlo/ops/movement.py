"""Ops that move elements without arithmetic: result elements are copies of operand elements (or counted, iota).

Source: XLA's ShapeInference (InferBroadcastShape, InferReshapeShape, InferTransposeShape, InferPadShape,
InferSliceShape, InferConcatOpShape, InferDynamicSliceShape, InferDynamicUpdateSliceShape, InferReverseShape) and the
checks of its ShapeVerifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..sizes import larger
from ..support.records import dataclass
from ..text.codecs import INTEGER, INTEGER_LIST, ONE_DIMENSION
from ..text.codecs_dimensions import PADDING, SLICE
from .checks import (
    array_of,
    fail,
    in_default_layout,
    require_arrays,
    require_declared,
    require_distinct_dimensions,
)
from .declare import SIZE, Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class BroadcastAttributes(Attributes):
    """Dimension i of the operand is dimension `dimensions[i]` of the result."""

    dimensions: Annotated[
        tuple[int, ...],
        Attr(INTEGER_LIST, dims=Dims(per=Of.OPERAND_0, names=Of.RESULT), absent=(), always=True),
    ]


@dataclass(frozen=True, slots=True)
class IotaAttributes(Attributes):
    iota_dimension: Annotated[int, Attr(INTEGER, dims=Dims(names=Of.RESULT))]


@dataclass(frozen=True, slots=True)
class TransposeAttributes(Attributes):
    """Dimension i of the result is dimension `dimensions[i]` of the operand."""

    dimensions: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(per=Of.RESULT, names=Of.OPERAND_0))]


@dataclass(frozen=True, slots=True)
class ReverseAttributes(Attributes):
    dimensions: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0, is_set=True))]


@dataclass(frozen=True, slots=True)
class SliceAttributes(Attributes):
    start_indices: Annotated[tuple[int, ...], Attr(SLICE, key="slice", dims=Dims(per=Of.OPERAND_0, whole=0))]
    limit_indices: Annotated[tuple[int, ...], Attr(SLICE, key="slice", dims=Dims(per=Of.OPERAND_0, whole=SIZE))]
    strides: Annotated[tuple[int, ...], Attr(SLICE, key="slice", dims=Dims(per=Of.OPERAND_0, whole=1))]


@dataclass(frozen=True, slots=True)
class PadAttributes(Attributes):
    """For each dimension: elements added before, after (negative: removed), and between neighbours (not negative)."""

    low: Annotated[tuple[int, ...], Attr(PADDING, key="padding", dims=Dims(per=Of.OPERAND_0, whole=0))]
    high: Annotated[tuple[int, ...], Attr(PADDING, key="padding", dims=Dims(per=Of.OPERAND_0, whole=0))]
    interior: Annotated[tuple[int, ...], Attr(PADDING, key="padding", dims=Dims(per=Of.OPERAND_0, whole=0))]


@dataclass(frozen=True, slots=True)
class ConcatenateAttributes(Attributes):
    dimension: Annotated[int, Attr(ONE_DIMENSION, key="dimensions", dims=Dims(names=Of.RESULT))]


@dataclass(frozen=True, slots=True)
class DynamicSliceAttributes(Attributes):
    """Operands: the array, then one scalar start index for each dimension (clamped so that the slice fits)."""

    dynamic_slice_sizes: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(per=Of.OPERAND_0, whole=SIZE))]


def _broadcast_rule(operands: Sequence[Shape], attributes: BroadcastAttributes, declared: Shape | None) -> Shape:
    """c1: the operand is an array, the declared result one of the same element type; c2: `dimensions` has one entry for
    each of the operand's; c3: they are distinct dimensions of the result; c4: the sizes are the same."""
    require_arrays(Opcode.BROADCAST, operands, 1)
    declared = require_declared(Opcode.BROADCAST, operands, declared, 1)
    operand, dimensions = operands[0], attributes.dimensions
    if declared.element_type is not operand.element_type:
        fail(Opcode.BROADCAST, operands, f"the result {declared} must have the operand's element type", 1)
    if len(dimensions) != operand.rank:
        fail(Opcode.BROADCAST, operands, f"dimensions {list(dimensions)} must have one entry a dimension", 2)
    require_distinct_dimensions(Opcode.BROADCAST, operands, dimensions, declared.rank, "dimensions", 3)
    for size, d in zip(operand.dimensions, dimensions):
        if declared.dimensions[d] != size:
            fail(Opcode.BROADCAST, operands, f"dimension {d} of {declared} must have size {size}", 4)
    return declared


def _concatenate_rule(operands: Sequence[Shape], attributes: ConcatenateAttributes, declared: Shape | None) -> Shape:
    """c1: there is an operand, and all are arrays; c2: they have one element type; c3: they have the dimension along
    which to join; c4: all other dimensions agree."""
    if not operands:
        fail(Opcode.CONCATENATE, operands, "there must be an operand", 1)
    require_arrays(Opcode.CONCATENATE, operands, 1)
    first, d = operands[0], attributes.dimension
    if not 0 <= d < first.rank:
        fail(Opcode.CONCATENATE, operands, f"dimension {d} must be in [0, {first.rank})", 3)
    for operand in operands:
        if operand.element_type is not first.element_type:
            fail(Opcode.CONCATENATE, operands, "operands must have one element type", 2)
        if (
            operand.rank != first.rank
            or operand.dimensions[:d] != first.dimensions[:d]
            or operand.dimensions[d + 1 :] != first.dimensions[d + 1 :]
        ):
            fail(Opcode.CONCATENATE, operands, f"operands may differ in dimension {d} only", 4)
    joined = sum(o.dimensions[d] for o in operands)
    return Shape.array(first.element, (*first.dimensions[:d], joined, *first.dimensions[d + 1 :]))


def _copy_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """The operand, an array or a tuple, with the declared layout, row-major by default."""
    return operands[0].with_default_layout()


def _bitcast_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """The same bytes under another shape. c1: operand and declared result are arrays; c2: both buffers have the
    same size."""
    require_arrays(Opcode.BITCAST, operands, 1)
    declared = require_declared(Opcode.BITCAST, operands, declared, 1)
    if declared.element_type is None:
        fail(Opcode.BITCAST, operands, "the result must be an array", 1)
    if declared.byte_size != operands[0].byte_size:
        fail(Opcode.BITCAST, operands, f"the result {declared} must have as many bytes as the operand", 2)
    return declared


def _require_start_indices(opcode: Opcode, operands: Sequence[Shape], starts: Sequence[Shape], rank: int) -> None:
    """c2: one start index for each dimension; c3: each is an integer scalar, all of one type."""
    if len(starts) != rank:
        fail(opcode, operands, f"there must be {rank} start indices, not {len(starts)}", 2)
    for start in starts:
        if start.element_type is None or not start.element_type.is_integral or start.dimensions:
            fail(opcode, operands, "start indices must be integer scalars", 3)
        if start.element_type is not starts[0].element_type:
            fail(opcode, operands, "start indices must have one element type", 3)


def _dynamic_slice_rule(operands: Sequence[Shape], attributes: DynamicSliceAttributes, declared: Shape | None) -> Shape:
    """c1: the first operand is an array; c2: one start index for each dimension follows; c3: each is an integer scalar,
    all of one type; c4: there is one slice size for each dimension, and it fits."""
    if not operands or operands[0].tuple_shapes is not None:
        fail(Opcode.DYNAMIC_SLICE, operands, "the first operand must be an array", 1)
    operand, sizes = operands[0], attributes.dynamic_slice_sizes
    _require_start_indices(Opcode.DYNAMIC_SLICE, operands, operands[1:], operand.rank)
    if len(sizes) != operand.rank or any(not 0 <= s <= d for s, d in zip(sizes, operand.dimensions)):
        fail(Opcode.DYNAMIC_SLICE, operands, f"slice sizes {list(sizes)} must fit in the operand", 4)
    return array_of(operand.element, sizes)


def _dynamic_update_slice_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Operands: array, update, start indices. c1: the first two are arrays of one element type and rank; c2, c3: the
    start indices are as for dynamic-slice; c4: the update fits in the array."""
    if len(operands) < 2 or operands[0].tuple_shapes is not None:
        fail(Opcode.DYNAMIC_UPDATE_SLICE, operands, "the first two operands must be arrays", 1)
    operand, update = operands[:2]
    if update.element_type is not operand.element_type or update.rank != operand.rank:
        fail(Opcode.DYNAMIC_UPDATE_SLICE, operands, "the update must have the array's element type and rank", 1)
    _require_start_indices(Opcode.DYNAMIC_UPDATE_SLICE, operands, operands[2:], operand.rank)
    if any(u > d for u, d in zip(update.dimensions, operand.dimensions)):
        fail(Opcode.DYNAMIC_UPDATE_SLICE, operands, "the update must fit in the array", 4)
    return in_default_layout(operand)


def _iota_rule(operands: Sequence[Shape], attributes: IotaAttributes, declared: Shape | None) -> Shape:
    """c1: the declared result is an array of numbers; c2: it has the dimension along which to count."""
    declared = require_declared(Opcode.IOTA, operands, declared, 1)
    if declared.element_type is None or declared.element_type is ElementType.PRED:
        fail(Opcode.IOTA, operands, f"the result {declared} must be an array of numbers", 1)
    if not 0 <= attributes.iota_dimension < declared.rank:
        fail(Opcode.IOTA, operands, f"iota_dimension {attributes.iota_dimension} must be in [0, {declared.rank})", 2)
    return declared


def _pad_rule(operands: Sequence[Shape], attributes: PadAttributes, declared: Shape | None) -> Shape:
    """Operands: array, padding value. c1: both are arrays, the second a scalar of the first's element type; c2: each
    padding list has one entry for each dimension; c3: interior padding is not negative; c4: no resulting size is."""
    operand, value = operands
    if operand.element_type is None or value.dimensions or value.element_type is not operand.element_type:
        fail(Opcode.PAD, operands, "the padding_value must be a scalar of the array's element type", 1)
    if not len(attributes.low) == len(attributes.high) == len(attributes.interior) == operand.rank:
        fail(Opcode.PAD, operands, "padding must be given for each dimension", 2)
    if any(i < 0 for i in attributes.interior):
        why = f"interior padding in padding_config must be nonnegative, not {list(attributes.interior)}"
        fail(Opcode.PAD, operands, why, 3)
    sizes = tuple(
        low + high + d + larger(d - 1, 0) * interior
        for d, low, high, interior in zip(operand.dimensions, attributes.low, attributes.high, attributes.interior)
    )
    if any(s < 0 for s in sizes):
        why = f"Dimension size after padding is not at least 0: the padded sizes are {list(sizes)}"
        fail(Opcode.PAD, operands, why, 4)
    return Shape.array(operand.element, sizes)


def _reshape_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """c1: operand and declared result are arrays of one element type; c2: they have the same number of elements."""
    require_arrays(Opcode.RESHAPE, operands, 1)
    declared = require_declared(Opcode.RESHAPE, operands, declared, 1)
    operand = operands[0]
    if declared.element_type is not operand.element_type:
        fail(Opcode.RESHAPE, operands, f"the result {declared} must have the operand's element type", 1)
    if declared.num_elements != operand.num_elements:
        why = f"{operand.num_elements} elements do not make {declared}, which has {declared.num_elements}"
        fail(Opcode.RESHAPE, operands, why, 2)
    return declared


def _reverse_rule(operands: Sequence[Shape], attributes: ReverseAttributes, declared: Shape | None) -> Shape:
    """c1: the operand is an array; c2: the dimensions are distinct dimensions of it."""
    require_arrays(Opcode.REVERSE, operands, 1)
    require_distinct_dimensions(Opcode.REVERSE, operands, attributes.dimensions, operands[0].rank, "dimensions", 2)
    return in_default_layout(operands[0])


def _slice_rule(operands: Sequence[Shape], attributes: SliceAttributes, declared: Shape | None) -> Shape:
    """c1: the operand is an array; c2: starts, limits, strides: one entry for each dimension; c3: in each,
    0 <= start <= limit <= size; c4: strides are positive."""
    require_arrays(Opcode.SLICE, operands, 1)
    operand = operands[0]
    starts, limits, strides = attributes.start_indices, attributes.limit_indices, attributes.strides
    if not len(starts) == len(limits) == len(strides) == operand.rank:
        fail(Opcode.SLICE, operands, "starts, limits and strides must be given for each dimension", 2)
    sizes = []
    for start, limit, stride, size in zip(starts, limits, strides, operand.dimensions):
        if not 0 <= start <= limit <= size:
            fail(Opcode.SLICE, operands, f"slice {start}:{limit} must lie in a dimension of size {size}", 3)
        if stride < 1:
            fail(Opcode.SLICE, operands, f"stride {stride} must be positive", 4)
        sizes.append(larger((limit - start - 1) // stride + 1, 0))
    return array_of(operand.element, tuple(sizes))


def _transpose_rule(operands: Sequence[Shape], attributes: TransposeAttributes, declared: Shape | None) -> Shape:
    """c1: the operand is an array; c2: the dimensions are a permutation of its dimensions."""
    require_arrays(Opcode.TRANSPOSE, operands, 1)
    operand, dimensions = operands[0], attributes.dimensions
    if sorted(dimensions) != list(range(operand.rank)):
        fail(Opcode.TRANSPOSE, operands, f"dimensions {list(dimensions)} must be a permutation", 2)
    return array_of(operand.element, tuple(operand.dimensions[d] for d in dimensions))


_FAMILY = "movement"
_MOVE = Trait.MOVEMENT
_ALIGNED = _MOVE | Trait.ALIGNED
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.BITCAST, _FAMILY, 1, Attributes, _bitcast_rule, _MOVE),
    OpSpec(_O.BROADCAST, _FAMILY, 1, BroadcastAttributes, _broadcast_rule, _MOVE),
    OpSpec(_O.CONCATENATE, _FAMILY, None, ConcatenateAttributes, _concatenate_rule, _ALIGNED),
    OpSpec(_O.COPY, _FAMILY, 1, Attributes, _copy_rule, _MOVE | Trait.ELEMENTWISE),
    OpSpec(_O.DYNAMIC_SLICE, _FAMILY, None, DynamicSliceAttributes, _dynamic_slice_rule, _ALIGNED, starts=1),
    OpSpec(_O.DYNAMIC_UPDATE_SLICE, _FAMILY, None, Attributes, _dynamic_update_slice_rule, _ALIGNED, starts=2),
    OpSpec(_O.IOTA, _FAMILY, 0, IotaAttributes, _iota_rule, Trait.ALIGNED),
    OpSpec(_O.PAD, _FAMILY, 2, PadAttributes, _pad_rule, _ALIGNED),
    OpSpec(_O.RESHAPE, _FAMILY, 1, Attributes, _reshape_rule, _MOVE),
    OpSpec(_O.REVERSE, _FAMILY, 1, ReverseAttributes, _reverse_rule, _ALIGNED),
    OpSpec(_O.SLICE, _FAMILY, 1, SliceAttributes, _slice_rule, _ALIGNED),
    OpSpec(_O.TRANSPOSE, _FAMILY, 1, TransposeAttributes, _transpose_rule, _MOVE),
)

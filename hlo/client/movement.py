"""ComputationBuilder's operations that move elements: broadcast, reshape, slices, padding, order.

Source: the sections "Broadcast", "Collapse", "Concatenate", "Pad", "Reshape", "Rev", "Slice", "DynamicSlice",
"DynamicUpdateSlice", "Sort", "Transpose".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..builder import make_instruction, make_parameter
from ..element_type import ElementType
from ..ir import HloComputation
from ..opcode import Opcode
from ..ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType
from ..ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ..ops.sort import SortAttributes
from ..shape import Shape
from .construction import Construction, Handle, Integers, integer, integers, of_kind, refuse
from .padding import PaddingConfig


def broadcast(build: Construction, operand: Handle, broadcast_sizes: Integers) -> Handle:
    """Copies of the operand along new dimensions on the left: sizes (a, b) make [a, b, ...operand]."""
    shape = build.array(operand)
    sizes = integers(broadcast_sizes, "broadcast_sizes")
    places = tuple(range(len(sizes), len(sizes) + shape.rank))
    target = Shape.array(shape.element, (*sizes, *shape.dimensions))
    return build.enqueue(Opcode.BROADCAST, [operand], BroadcastAttributes(places), target)


def reshape(
    build: Construction, operand: Handle, dimensions_or_new_sizes: Integers, new_sizes: Integers | None = None
) -> Handle:
    """`reshape(operand, new_sizes)`, or `reshape(operand, dimensions, new_sizes)`.

    The elements in the order of `dimensions` (major to minor; by default as they are), in an array of `new_sizes`.
    """
    shape = build.array(operand)
    if new_sizes is not None:
        dimensions = integers(dimensions_or_new_sizes, "dimensions")
        if dimensions != tuple(range(shape.rank)):
            operand = transpose(build, operand, dimensions)
    sizes = integers(dimensions_or_new_sizes if new_sizes is None else new_sizes, "new_sizes")
    return build.enqueue(Opcode.RESHAPE, [operand], shape=Shape.array(shape.element, sizes))


def collapse(build: Construction, operand: Handle, dimensions: Integers) -> Handle:
    """Replace consecutive dimensions by one dimension with the product of their sizes; fewer than two are unchanged.

    builder_c6: the dimensions are the operand's, in order and without a gap.
    """
    shape = build.array(operand)
    found = integers(dimensions, "dimensions")
    consecutive = not found or found == tuple(range(found[0], found[0] + len(found)))
    if not consecutive or any(not 0 <= d < shape.rank for d in found):
        why = f"dimensions {list(found)} must be consecutive dimensions of {shape}, in order"
        refuse(why, "builder_c6")
    if len(found) <= 1:
        return operand
    size = 1
    for d in found:
        size *= shape.dimensions[d]
    sizes = (*shape.dimensions[: found[0]], size, *shape.dimensions[found[-1] + 1 :])
    return build.enqueue(Opcode.RESHAPE, [operand], shape=Shape.array(shape.element, sizes))


def concat_in_dim(build: Construction, operands: Sequence[Handle], dimension: int) -> Handle:
    """The operands one after the other along `dimension`; they agree in all others."""
    along = integer(dimension, "the dimension")
    return build.enqueue(Opcode.CONCATENATE, operands, ConcatenateAttributes(along))


def pad(build: Construction, operand: Handle, padding_value: Handle, padding_config: PaddingConfig) -> Handle:
    """`padding_value` between the operand's elements, then around it; negative edges then remove elements."""
    config = of_kind(padding_config, PaddingConfig, "the padding").dimensions
    attributes = PadAttributes(
        integers([d.edge_padding_low for d in config], "edge_padding_low"),
        integers([d.edge_padding_high for d in config], "edge_padding_high"),
        integers([d.interior_padding for d in config], "interior_padding"),
    )
    return build.enqueue(Opcode.PAD, [operand, padding_value], attributes)


def rev(build: Construction, operand: Handle, dimensions: Integers) -> Handle:
    """The elements along `dimensions` in reverse."""
    return build.enqueue(Opcode.REVERSE, [operand], ReverseAttributes(integers(dimensions, "dimensions")))


def slice_(
    build: Construction,
    operand: Handle,
    start_indices: Integers,
    limit_indices: Integers,
    strides: Integers | None = None,
) -> Handle:
    """Elements from start to before limit, in each dimension; every `stride`-th if `strides` are given."""
    starts = integers(start_indices, "start_indices")
    steps = (1,) * len(starts) if strides is None else integers(strides, "strides")
    attributes = SliceAttributes(starts, integers(limit_indices, "limit_indices"), steps)
    return build.enqueue(Opcode.SLICE, [operand], attributes)


def dynamic_slice(
    build: Construction, operand: Handle, start_indices: Handle | Sequence[Handle], slice_sizes: Integers
) -> Handle:
    """`slice_sizes` elements from computed start indices: a vector with one for each dimension, or scalars.

    Starts are clamped so that the slice is within the operand.
    """
    starts = _starts(build, start_indices)
    attributes = DynamicSliceAttributes(integers(slice_sizes, "slice_sizes"))
    return build.enqueue(Opcode.DYNAMIC_SLICE, [operand, *starts], attributes)


def dynamic_update_slice(
    build: Construction, operand: Handle, update: Handle, start_indices: Handle | Sequence[Handle]
) -> Handle:
    """The operand, overwritten by `update` at the start indices, which are given as for `dynamic_slice`."""
    return build.enqueue(Opcode.DYNAMIC_UPDATE_SLICE, [operand, update, *_starts(build, start_indices)])


def sort(build: Construction, operand: Handle, dimension: int = -1) -> Handle:
    """Ascending along one dimension, by default the last. Floats are in total order: -NaN first, -0 before 0, NaN
    last."""
    shape = build.array(operand)
    along = integer(dimension, "the dimension")
    if shape.rank and along < 0:
        along += shape.rank
    return build.enqueue(Opcode.SORT, [operand], SortAttributes(along, less_than(shape.element)))


def transpose(build: Construction, operand: Handle, permutation: Integers) -> Handle:
    """Dimension i of the result is dimension `permutation[i]` of the operand."""
    return build.enqueue(Opcode.TRANSPOSE, [operand], TransposeAttributes(integers(permutation, "the permutation")))


def trans(build: Construction, operand: Handle) -> Handle:
    """The transpose of a matrix. builder_c10: it is one."""
    shape = build.array(operand)
    if shape.rank != 2:
        refuse(f"the operand must be a matrix, not {shape}", "builder_c10")
    return transpose(build, operand, (1, 0))


def _starts(build: Construction, start_indices: Handle | Sequence[Handle]) -> list[Handle]:
    """Scalars, one for each dimension. builder_c10: a single handle is a vector."""
    if not isinstance(start_indices, Handle):
        return list(start_indices)
    shape = build.array(start_indices)
    if shape.rank != 1:
        refuse(f"start indices must be a vector with one a dimension, or scalars, not {shape}", "builder_c10")
    scalar = Shape.array(shape.element)
    pieces = [slice_(build, start_indices, (k,), (k + 1,)) for k in range(shape.dimensions[0])]
    return [build.enqueue(Opcode.RESHAPE, [piece], shape=scalar) for piece in pieces]


@cache
def less_than(element_type: ElementType) -> HloComputation:
    """The comparator of an ascending sort: a < b, floats in total order."""
    scalar = Shape.array(element_type)
    a, b = make_parameter(0, scalar, "a"), make_parameter(1, scalar, "b")
    order = ComparisonType.TOTALORDER if element_type.is_floating else None
    root = make_instruction(Opcode.COMPARE, (a, b), CompareAttributes(ComparisonDirection.LT, order))
    return HloComputation(f"less_than_{element_type.value}", (a, b, root), root)

"""Rules of the algebraic simplifier for ops that only move elements, and for tuples. They hold for all element types.

As in arithmetic.py, a rule takes an instruction and returns its replacement, or None.
"""

from __future__ import annotations

import math

from ...builder import make_constant, make_instruction
from ...effects import has_side_effect
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.movement import ConcatenateAttributes, DynamicSliceAttributes, ReverseAttributes, SliceAttributes
from ...shape import Shape
from ..patterns import broadcast, degenerate_map, make_splat, nontrivial_dimensions, reshape, splat_literal, transpose
from ..rules import rule

Instruction = HloInstruction


def uniform_constant(i: Instruction) -> Instruction | None:
    """An array constant with the same bits in all elements becomes a scalar, broadcast: it needs no memory then."""
    if not i.shape.dimensions:
        return None
    array = i.attributes.literal.array
    if array.size < 2 or array.size > 1 << 20:
        return None
    first = array.reshape(-1)[:1]
    if first.tobytes() != array.reshape(-1)[-1:].tobytes() or first.tobytes() * array.size != array.tobytes():
        return None
    return broadcast(make_constant(first.reshape(())), i.shape, ())


def empty_result(i: Instruction) -> Instruction | None:
    """An array without elements needs no operands; but a side effect stays."""
    if i.shape.is_tuple or i.shape.num_elements or i.opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
        return None
    if has_side_effect(i) or not i.shape.array_layout.is_row_major:  # the caller's has its layout, and perhaps padding
        return None
    if i.opcode is Opcode.BROADCAST and i.operands[0].opcode is Opcode.CONSTANT:
        return None
    return make_splat(0, i.shape)


def transpose_nothing(i: Instruction) -> Instruction | None:
    """A transpose that keeps the order of all dimensions larger than 1 is a reshape (or its operand)."""
    (x,) = i.operands
    if len(nontrivial_dimensions(x.shape.dimensions)) < 2:
        return reshape(x, i.shape.dimensions)
    moved = [d for d in i.attributes.dimensions if x.shape.dimensions[d] != 1]
    return reshape(x, i.shape.dimensions) if moved == sorted(moved) else None


def transpose_of_transpose(i: Instruction) -> Instruction | None:
    """Two transposes are one."""
    (x,) = i.operands
    if x.opcode is not Opcode.TRANSPOSE:
        return None
    inner = x.attributes.dimensions
    return transpose(x.operands[0], [inner[d] for d in i.attributes.dimensions])


def transpose_of_broadcast(i: Instruction) -> Instruction | None:
    """A transposed broadcast is a broadcast, if it keeps the order of the operand's own dimensions."""
    (x,) = i.operands
    if x.opcode is not Opcode.BROADCAST:
        return None
    place = {d: new for new, d in enumerate(i.attributes.dimensions)}
    dimensions = [place[d] for d in x.attributes.dimensions]
    return broadcast(x.operands[0], i.shape, dimensions) if dimensions == sorted(dimensions) else None


def reshape_nothing(i: Instruction) -> Instruction | None:
    """A reshape to the same dimensions is its operand; two reshapes are one."""
    (x,) = i.operands
    if x.opcode is Opcode.RESHAPE:
        return reshape(x.operands[0], i.shape.dimensions)
    return x if x.shape.dimensions == i.shape.dimensions else None


def reshape_of_broadcast(i: Instruction) -> Instruction | None:
    """A reshape of a broadcast scalar, or one that adds or removes dimensions of size 1, is a broadcast."""
    (x,) = i.operands
    if x.opcode is not Opcode.BROADCAST:
        return None
    source = x.operands[0]
    if source.shape.num_elements == 1:
        return broadcast(reshape(source, ()), i.shape, ())
    moved = degenerate_map(x.shape.dimensions, i.shape.dimensions)
    if moved is None:
        return None
    # a dimension of the source that has no place in the result has size 1: it goes
    places = [moved[d] for d in x.attributes.dimensions]
    kept = [(size, d) for size, d in zip(source.shape.dimensions, places, strict=True) if d is not None]
    return broadcast(reshape(source, [size for size, _ in kept]), i.shape, [d for _, d in kept])


def broadcast_nothing(i: Instruction) -> Instruction | None:
    """A broadcast that only adds dimensions of size 1 is a reshape (or its operand)."""
    (x,) = i.operands
    dimensions = i.attributes.dimensions
    if x.shape.num_elements != i.shape.num_elements or dimensions != tuple(sorted(dimensions)):
        return None
    return reshape(x, i.shape.dimensions)


def broadcast_of_broadcast(i: Instruction) -> Instruction | None:
    """Two broadcasts are one."""
    (x,) = i.operands
    if x.opcode is not Opcode.BROADCAST:
        return None
    return broadcast(x.operands[0], i.shape, [i.attributes.dimensions[d] for d in x.attributes.dimensions])


def broadcast_of_reshape(i: Instruction) -> Instruction | None:
    """broadcast(reshape(x)) is broadcast(x) if the reshape only adds dimensions of size 1."""
    (x,) = i.operands
    if x.opcode is not Opcode.RESHAPE:
        return None
    source = x.operands[0]
    moved = degenerate_map(source.shape.dimensions, x.shape.dimensions)
    if moved is None:
        return None
    places = [i.attributes.dimensions[d] for d in moved if d is not None]
    return broadcast(source, i.shape, places) if len(places) == len(moved) else None


def broadcast_of_merged(i: Instruction) -> Instruction | None:
    """broadcast(reshape(broadcast(x))) is reshape(broadcast(x)) if the first reshape only merges dimensions: elements
    that are repeated along one dimension and then along another are repeated at once."""
    (x,) = i.operands
    if x.opcode is not Opcode.RESHAPE or x.operands[0].opcode is not Opcode.BROADCAST:
        return None
    inner, dimensions = x.operands[0], i.attributes.dimensions
    groups = _merged_groups(inner.shape.dimensions, x.shape.dimensions)
    if groups is None or dimensions != tuple(sorted(dimensions)):
        return None
    sizes: list[int] = []
    places: list[int] = []
    for d, size in enumerate(i.shape.dimensions):
        parts = groups[dimensions.index(d)] if d in dimensions else None
        if parts is not None:
            places += range(len(sizes), len(sizes) + len(parts))
        sizes += [size] if parts is None else parts
    where = [places[d] for d in inner.attributes.dimensions]
    repeated = broadcast(inner.operands[0], Shape.array(i.shape.element, tuple(sizes)), where)
    return reshape(repeated, i.shape.dimensions)


def _merged_groups(source: tuple[int, ...], target: tuple[int, ...]) -> list[list[int]] | None:
    """For each size of `target`, the neighbours in `source` that multiply to it; None if there are none."""
    groups: list[list[int]] = []
    rest = list(source)
    for size in target:
        group = [rest.pop(0)] if rest else []
        while rest and math.prod(group) < size:
            group.append(rest.pop(0))
        if not group or math.prod(group) != size:
            return None
        groups.append(group)
    return None if rest else groups


def broadcast_in_order(i: Instruction) -> Instruction | None:
    """A broadcast that also transposes becomes a transpose of the small operand and a broadcast in order."""
    (x,) = i.operands
    dimensions = i.attributes.dimensions
    order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    if order == list(range(len(dimensions))):
        return None
    return broadcast(transpose(x, order), i.shape, sorted(dimensions))


def slice_nothing(i: Instruction) -> Instruction | None:
    """A slice of everything is its operand."""
    (x,) = i.operands
    return x if x.shape.dimensions == i.shape.dimensions else None


def slice_of_slice(i: Instruction) -> Instruction | None:
    """Two slices are one."""
    (x,) = i.operands
    if x.opcode is not Opcode.SLICE:
        return None
    inner, outer = x.attributes, i.attributes
    starts, limits, strides = [], [], []
    for start, stride, a, b, step in zip(
        inner.start_indices, inner.strides, outer.start_indices, outer.limit_indices, outer.strides, strict=True
    ):
        last = max(a, b - 1)  # of an empty slice nothing is read
        starts.append(start + a * stride)
        limits.append(start + last * stride + 1 if b > a else start + a * stride)
        strides.append(stride * step)
    if any(s > d for s, d in zip(starts, x.operands[0].shape.dimensions, strict=True)):
        return None  # an empty slice at the end; empty_result takes it
    return make_instruction(
        Opcode.SLICE, x.operands, SliceAttributes(tuple(starts), tuple(limits), tuple(strides)), i.shape
    )


def slice_of_broadcast(i: Instruction) -> Instruction | None:
    """A slice that cuts a broadcast only along dimensions that repeat is a smaller broadcast."""
    (x,) = i.operands
    if x.opcode is not Opcode.BROADCAST:
        return None
    if any(i.shape.dimensions[d] != x.shape.dimensions[d] for d in x.attributes.dimensions):
        return None
    return broadcast(x.operands[0], i.shape, x.attributes.dimensions)


def slice_of_reverse(i: Instruction) -> Instruction | None:
    """A slice of a reversed array is a slice from the other end of the array, reversed."""
    (x,) = i.operands
    if x.opcode is not Opcode.REVERSE or not i.shape.num_elements:
        return None
    starts, limits = list(i.attributes.start_indices), list(i.attributes.limit_indices)
    for d in x.attributes.dimensions:
        limits[d] = x.shape.dimensions[d] - starts[d]
        starts[d] = limits[d] - 1 - (i.shape.dimensions[d] - 1) * i.attributes.strides[d]
    attributes = SliceAttributes(tuple(starts), tuple(limits), i.attributes.strides)
    part = make_instruction(Opcode.SLICE, x.operands, attributes, i.shape)
    dimensions = tuple(d for d in x.attributes.dimensions if i.shape.dimensions[d] > 1)
    return make_instruction(Opcode.REVERSE, (part,), ReverseAttributes(dimensions)) if dimensions else part


def slice_of_concatenate(i: Instruction) -> Instruction | None:
    """A slice that lies within one operand of a concatenate is a slice of that operand."""
    (x,) = i.operands
    if x.opcode is not Opcode.CONCATENATE:
        return None
    d = x.attributes.dimension
    start, limit = i.attributes.start_indices[d], i.attributes.limit_indices[d]
    first = 0
    for operand in x.operands:
        end = first + operand.shape.dimensions[d]
        if first <= start and limit <= end and start < limit:
            starts, limits = list(i.attributes.start_indices), list(i.attributes.limit_indices)
            starts[d], limits[d] = start - first, limit - first
            attributes = SliceAttributes(tuple(starts), tuple(limits), i.attributes.strides)
            return make_instruction(Opcode.SLICE, (operand,), attributes, i.shape)
        first = end
    return None


def pad_nothing(i: Instruction) -> Instruction | None:
    """A pad by nothing is its operand; one of an array without elements, or of the padding value, is that value."""
    x, value = i.operands
    a = i.attributes
    if x.shape.dimensions == i.shape.dimensions and not any((*a.low, *a.high)):
        return x
    if x.shape.num_elements == 0:
        return broadcast(value, i.shape, ())
    if x.opcode is Opcode.BROADCAST and x.operands[0] is value:
        return broadcast(value, i.shape, ())
    return None


def pad_negative(i: Instruction) -> Instruction | None:
    """A pad that only removes elements is a slice."""
    x, _ = i.operands
    a = i.attributes
    if any(p > 0 for p in (*a.low, *a.high, *a.interior)) or not any((*a.low, *a.high)):
        return None
    starts = tuple(-low for low in a.low)
    limits = tuple(size + high for size, high in zip(x.shape.dimensions, a.high, strict=True))
    if any(s > e for s, e in zip(starts, limits, strict=True)):
        return None
    return make_instruction(Opcode.SLICE, (x,), SliceAttributes(starts, limits, (1,) * x.shape.rank), i.shape)


def concatenate_little(i: Instruction) -> Instruction | None:
    """A concatenate of one array is that array; arrays without elements fall out; nested ones are one."""
    d = i.attributes.dimension
    operands: list[Instruction] = []
    for x in i.operands:
        if x.opcode is Opcode.CONCATENATE and x.attributes.dimension == d:
            operands += x.operands
        elif x.shape.dimensions[d]:
            operands.append(x)
    if len(operands) == 1:
        return operands[0]
    if not operands or tuple(operands) == i.operands:
        return None
    return make_instruction(Opcode.CONCATENATE, operands, ConcatenateAttributes(d))


def concatenate_of_neighbours(i: Instruction) -> Instruction | None:
    """Slices of one array that begin where the one before ends are one slice; also reshaped ones, where the elements of
    each are one after the other in the result."""
    d = i.attributes.dimension
    parts: list[Instruction] = []
    joined: list[tuple[Instruction, int]] = []  # of the last part: the last slice, and the sum of sizes along d
    for x in i.operands:
        part = x.operands[0] if x.opcode is Opcode.RESHAPE else x
        if part.opcode is not Opcode.SLICE or (part is not x and not _is_first(x, d)):
            joined = []
        elif joined and (both := _neighbours(joined[-1][0], part, d if part is x else None)):
            size = joined[-1][1] + x.shape.dimensions[d]
            sizes = (*x.shape.dimensions[:d], size, *x.shape.dimensions[d + 1 :])
            parts[-1] = reshape(both, sizes)
            joined = [(both, size)]
            continue
        else:
            joined = [(part, x.shape.dimensions[d])]
        parts.append(x)
    return None if len(parts) == len(i.operands) else make_instruction(Opcode.CONCATENATE, parts, i.attributes)


def _is_first(x: Instruction, d: int) -> bool:
    return all(size == 1 for size in x.shape.dimensions[:d])


def _neighbours(one: Instruction, other: Instruction, d: int | None) -> Instruction | None:
    """The slice that is two slices joined along d; without d, along the first dimension of the slices that may be
    larger than 1."""
    a, b = one.attributes, other.attributes
    if one.operands != other.operands or a.strides != b.strides:
        return None
    differ = [k for k, (x, y) in enumerate(zip(a.start_indices, b.start_indices, strict=True)) if x != y]
    if len(differ) != 1 or (d is not None and differ != [d]) or (d is None and not _is_first(one, differ[0])):
        return None
    (k,) = differ
    if a.start_indices[k] + one.shape.dimensions[k] * a.strides[k] != b.start_indices[k]:
        return None
    if any(x != y for e, (x, y) in enumerate(zip(one.shape.dimensions, other.shape.dimensions, strict=True)) if e != k):
        return None
    limits = tuple(b.limit_indices[e] if e == k else limit for e, limit in enumerate(a.limit_indices))
    return make_instruction(Opcode.SLICE, one.operands, SliceAttributes(a.start_indices, limits, a.strides))


def reverse_nothing(i: Instruction) -> Instruction | None:
    """Reversed dimensions of size 1, and all in which a broadcast repeats, do not matter; two reverses are one."""
    (x,) = i.operands
    dimensions = {d for d in i.attributes.dimensions if x.shape.dimensions[d] != 1}
    if x.opcode is Opcode.BROADCAST:
        dimensions &= set(x.attributes.dimensions)
    source = x
    if x.opcode is Opcode.REVERSE:
        dimensions ^= set(x.attributes.dimensions)
        source = x.operands[0]
    if not dimensions:
        return source
    if source is x and len(dimensions) == len(i.attributes.dimensions):
        return None
    return make_instruction(Opcode.REVERSE, (source,), ReverseAttributes(tuple(sorted(dimensions))))


def reverse_of_concatenate(i: Instruction) -> Instruction | None:
    """A reversed concatenate is one of reversed operands, if that undoes the reverse of one of them."""
    (x,) = i.operands
    dimensions = i.attributes.dimensions
    if x.opcode is not Opcode.CONCATENATE:
        return None
    if not any(o.opcode is Opcode.REVERSE and o.attributes.dimensions == dimensions for o in x.operands):
        return None
    parts = [make_instruction(Opcode.REVERSE, (o,), i.attributes) for o in x.operands]
    along = x.attributes.dimension
    return make_instruction(Opcode.CONCATENATE, parts[::-1] if along in dimensions else parts, x.attributes)


def dynamic_slice_of_all(i: Instruction) -> Instruction | None:
    """Where a dynamic-slice takes a whole dimension, its start index is clamped to 0; all whole: the operand."""
    x, *starts = i.operands
    if i.shape.dimensions == x.shape.dimensions:
        return x
    return _with_zero_starts(i, x, starts, i.attributes.dynamic_slice_sizes, 1)


def dynamic_slice_constant(i: Instruction) -> Instruction | None:
    """A dynamic-slice at constant indices, clamped into the array, is a slice."""
    x, *starts = i.operands
    if any(s.opcode is not Opcode.CONSTANT for s in starts):
        return None
    sizes = i.attributes.dynamic_slice_sizes
    first = [
        min(max(int(s.attributes.literal.array), 0), d - n)
        for s, d, n in zip(starts, x.shape.dimensions, sizes, strict=True)
    ]
    limits = tuple(f + n for f, n in zip(first, sizes, strict=True))
    return make_instruction(Opcode.SLICE, (x,), SliceAttributes(tuple(first), limits, (1,) * len(first)))


def dynamic_slice_of_broadcast(i: Instruction) -> Instruction | None:
    """A dynamic-slice that cuts a broadcast only along dimensions that repeat is a smaller broadcast."""
    x = i.operands[0]
    if x.opcode is not Opcode.BROADCAST:
        return None
    if any(i.shape.dimensions[d] != x.shape.dimensions[d] for d in x.attributes.dimensions):
        return None
    return broadcast(x.operands[0], i.shape, x.attributes.dimensions)


def update_of_all(i: Instruction) -> Instruction | None:
    """An update of the whole array is the update, of nothing the array; whole dimensions start at 0."""
    x, update, *starts = i.operands
    if update.shape.dimensions == x.shape.dimensions:
        return update
    if update.shape.num_elements == 0:
        return x
    return _with_zero_starts(i, x, starts, update.shape.dimensions, 2)


def _with_zero_starts(
    i: Instruction, x: Instruction, starts: list[Instruction], sizes: tuple[int, ...], first: int
) -> Instruction | None:
    new = list(i.operands)
    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if size == x.shape.dimensions[d] and splat_literal(start) is None:
            new[first + d] = make_splat(0, start.shape)
    if all(a is b for a, b in zip(new, i.operands, strict=True)):
        return None
    attributes = DynamicSliceAttributes(sizes) if i.opcode is Opcode.DYNAMIC_SLICE else i.attributes
    return make_instruction(i.opcode, new, attributes)


def copy_nothing(i: Instruction) -> Instruction | None:
    """A copy to the same layout is its operand; buffer assignment makes the copies that memory needs. Of two copies one
    is enough."""
    (x,) = i.operands
    if x.shape == i.shape:
        return x
    return make_instruction(Opcode.COPY, x.operands, shape=i.shape) if x.opcode is Opcode.COPY else None


def bitcast_of_bitcast(i: Instruction) -> Instruction | None:
    """Two bitcasts are one, or none."""
    (x,) = i.operands
    if x.opcode is not Opcode.BITCAST:
        return None
    (source,) = x.operands
    return source if source.shape == i.shape else make_instruction(Opcode.BITCAST, x.operands, shape=i.shape)


def bitcast_row_major(i: Instruction) -> Instruction | None:
    """A bitcast between row-major arrays of one element type is a reshape."""
    (x,) = i.operands
    if x.shape.element_type is i.shape.element_type and x.shape.array_layout.is_row_major:
        return reshape(x, i.shape.dimensions) if i.shape.array_layout.is_row_major else None
    return None


def iota_of_one(i: Instruction) -> Instruction | None:
    """An iota along a dimension of size 1 is zero."""
    return make_splat(0, i.shape) if i.shape.dimensions[i.attributes.iota_dimension] == 1 else None


def element_of_tuple(i: Instruction) -> Instruction | None:
    """get-tuple-element of a tuple is the element."""
    (x,) = i.operands
    return x.operands[i.attributes.index] if x.opcode is Opcode.TUPLE else None


def tuple_of_elements(i: Instruction) -> Instruction | None:
    """A tuple of all elements of a tuple, in order, is that tuple."""
    if not i.operands or i.operands[0].opcode is not Opcode.GET_TUPLE_ELEMENT:
        return None
    source = i.operands[0].operands[0]
    if len(source.shape.elements) != len(i.operands):
        return None
    for index, x in enumerate(i.operands):
        if x.opcode is not Opcode.GET_TUPLE_ELEMENT or x.operands[0] is not source or x.attributes.index != index:
            return None
    return source


_O = Opcode

MOVEMENT_RULES = (
    rule(uniform_constant, _O.CONSTANT),
    rule(transpose_nothing, _O.TRANSPOSE),
    rule(transpose_of_transpose, _O.TRANSPOSE, operands={_O.TRANSPOSE}),
    rule(transpose_of_broadcast, _O.TRANSPOSE, operands={_O.BROADCAST}),
    rule(reshape_nothing, _O.RESHAPE),
    rule(reshape_of_broadcast, _O.RESHAPE, operands={_O.BROADCAST}),
    rule(broadcast_nothing, _O.BROADCAST),
    rule(broadcast_of_broadcast, _O.BROADCAST, operands={_O.BROADCAST}),
    rule(broadcast_of_reshape, _O.BROADCAST, operands={_O.RESHAPE}),
    rule(broadcast_of_merged, _O.BROADCAST, operands={_O.RESHAPE}),
    rule(broadcast_in_order, _O.BROADCAST),
    rule(slice_nothing, _O.SLICE),
    rule(slice_of_slice, _O.SLICE, operands={_O.SLICE}),
    rule(slice_of_broadcast, _O.SLICE, operands={_O.BROADCAST}),
    rule(slice_of_reverse, _O.SLICE, operands={_O.REVERSE}),
    rule(slice_of_concatenate, _O.SLICE, operands={_O.CONCATENATE}),
    rule(pad_nothing, _O.PAD),
    rule(pad_negative, _O.PAD),
    rule(concatenate_little, _O.CONCATENATE),
    rule(concatenate_of_neighbours, _O.CONCATENATE, operands={_O.SLICE, _O.RESHAPE}),
    rule(reverse_nothing, _O.REVERSE),
    rule(reverse_of_concatenate, _O.REVERSE, operands={_O.CONCATENATE}),
    rule(dynamic_slice_of_all, _O.DYNAMIC_SLICE),
    rule(dynamic_slice_constant, _O.DYNAMIC_SLICE),
    rule(dynamic_slice_of_broadcast, _O.DYNAMIC_SLICE, operands={_O.BROADCAST}),
    rule(update_of_all, _O.DYNAMIC_UPDATE_SLICE),
    rule(copy_nothing, _O.COPY),
    rule(bitcast_row_major, _O.BITCAST),
    rule(bitcast_of_bitcast, _O.BITCAST, operands={_O.BITCAST}),
    rule(iota_of_one, _O.IOTA),
    rule(element_of_tuple, _O.GET_TUPLE_ELEMENT, operands={_O.TUPLE}),
    rule(tuple_of_elements, _O.TUPLE, operands={_O.GET_TUPLE_ELEMENT}),
)
"""In the order in which they are tried. `empty_result` comes before these for all opcodes."""

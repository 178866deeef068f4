"""Canonical fused computations: no dimensions of size 1, and neighbours merged that are always next to each other.

Both change the view, not the memory: arrays are row-major here, and the `PhysicalLayout` of an array that is not says
which dimensions may be merged. They make the loop nests as shallow as possible, and equal for programs that
differ only in rank: adding [32,28,28,8] arrays is the same kernel as adding [802816] ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from ...hlo.analyses.in_bounds import INDEXED, in_bounds, window_sizes, with_in_bounds
from ...hlo.builder import make_instruction
from ...hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.ops.movement import (
    BroadcastAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ...hlo.ops.reduce import ReduceAttributes
from ...hlo.shape import Shape
from .alignment import alignment_of, roots_of
from .collapse_gather import collapsed_gather, merging_neighbours, squeezed_gather, with_same_bounds
from .flatten import flattened
from .physical_layouts import PhysicalLayout, PhysicalLayouts, physical_layout_of


@dataclass(frozen=True, eq=False)
class FusedBody:
    """A canonical fused computation, and the places of its arrays that are not in row-major order."""

    computation: HloComputation
    parameter_places: PhysicalLayouts
    """The layouts, by the number of the parameter."""
    root_places: PhysicalLayouts
    """The layouts, by the number of the output."""

    @property
    def is_identity(self) -> bool:
        """True when the one output is the one operand, element by element, at the same offsets."""
        root = self.computation.root
        source = root.operands[0] if root.opcode is Opcode.COPY else root
        same = self.parameter_places.get(0) == self.root_places.get(0)
        return source.opcode is Opcode.PARAMETER and len(self.computation.parameters) == 1 and same


def structure_of(computation: HloComputation) -> tuple[object, ...]:
    """All properties of a computation that `canonical` depends on. Computations with equal structures have equal
    kernels; only names, metadata and the memory spaces of parameters and roots may differ."""
    position: dict[HloInstruction, int] = {}
    found: list[object] = []
    for i in computation.instructions:
        if i.shape.is_array:
            layout = i.shape.array_layout
            form: tuple[object, ...] = (
                i.shape.element, i.shape.dimensions, layout.minor_to_major, layout.tiles, layout.element_size_in_bits,
                layout.tail_padding_alignment_in_elements, layout.padded_dimensions,
            )  # fmt: skip
        else:
            form = () if i.opcode is Opcode.TUPLE else (i.shape,)
        attributes = i.attributes
        if attributes is not NO_ATTRIBUTES and (called := attributes.called_computations()):
            attributes = (*_plain_fields(attributes), *map(structure_of, called))
        known = in_bounds(i) if i.opcode in INDEXED else None
        found.append((i.opcode, form, attributes, known, tuple([position[o] for o in i.operands])))
        position[i] = len(position)
    return (*found, position[computation.root])


def _plain_fields(attributes: Attributes) -> Iterator[object]:
    """The attributes, without the computations that they name."""
    for f in fields(attributes):
        value = getattr(attributes, f.name)
        if not isinstance(value, HloComputation):
            yield value


def canonical(computation: HloComputation) -> FusedBody:
    """An equal computation on arrays of the lowest rank; parameters and roots keep their order and element counts."""
    computation = flattened(computation) or computation
    parameters = {p.attributes.number: physical_layout_of(p.shape) for p in computation.parameters}
    roots = {k: physical_layout_of(r.shape) for k, r in enumerate(roots_of(computation))}
    return _collapse(
        FusedBody(
            _squeeze(computation),
            {k: place for k, place in parameters.items() if place is not None},
            {k: place for k, place in roots.items() if place is not None},
        )
    )


def reshaped(operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    """`operand` seen with other dimensions; `operand` itself if they are the same. Looks through a reshape."""
    if operand.shape.dimensions == tuple(dimensions):
        return operand
    if operand.opcode is Opcode.RESHAPE:
        return reshaped(operand.operands[0], dimensions)
    return make_instruction(Opcode.RESHAPE, (operand,), shape=Shape.array(operand.shape.element, dimensions))


def _kept(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in shape.dimensions if d != 1)


def _array_like(instruction: HloInstruction, dimensions: Sequence[int]) -> Shape:
    return Shape.array(instruction.shape.element, dimensions)


def _rebuild(computation: HloComputation, mapping: dict[HloInstruction, HloInstruction]) -> HloComputation:
    instructions: dict[HloInstruction, None] = dict.fromkeys(mapping[p] for p in computation.parameters)
    stack = [(mapping[computation.root], False)]
    while stack:
        node, done = stack.pop()
        if node in instructions:
            continue
        if done:
            instructions[node] = None
        else:
            stack.append((node, True))
            stack.extend((o, False) for o in reversed(node.operands))
    return HloComputation(computation.name, tuple(instructions), mapping[computation.root])


def _squeeze(computation: HloComputation) -> HloComputation:
    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        operands = tuple(mapping[o] for o in old.operands)
        mapping[old] = _squeezed(old, operands)
    return _rebuild(computation, mapping)


def _squeezed(old: HloInstruction, operands: tuple[HloInstruction, ...]) -> HloInstruction:
    """`old` on squeezed operands, with a squeezed result."""
    opcode = old.opcode
    if opcode is Opcode.TUPLE:
        return make_instruction(Opcode.TUPLE, operands)
    if opcode is Opcode.GET_TUPLE_ELEMENT:
        return make_instruction(opcode, operands, old.attributes)
    if opcode is Opcode.REDUCE:
        return _squeezed_reduce(old, operands)
    kept = _kept(old.shape)
    shape = _array_like(old, kept)
    if opcode is Opcode.CONSTANT:
        if kept == old.shape.dimensions:
            return old
        return reshaped(old, kept)
    if not operands and opcode is not Opcode.IOTA:
        return old if shape == old.shape else replace(old, shape=shape)
    if opcode is Opcode.COPY and operands[0].opcode in (Opcode.REDUCE, Opcode.GET_TUPLE_ELEMENT):
        return operands[0]  # in another layout, but nests look for accumulators among the outputs
    if is_elementwise(old):
        return old.with_operands(operands) if shape == old.shape else replace(old, shape=shape, operands=operands)
    if opcode in (Opcode.RESHAPE, Opcode.BITCAST):
        return reshaped(operands[0], kept)
    position = {d: i for i, d in enumerate(d for d, size in enumerate(old.shape.dimensions) if size != 1)}
    if opcode is Opcode.BROADCAST:
        source = old.operands[0].shape.dimensions
        dimensions = tuple(position[d] for d, size in zip(old.attributes.dimensions, source, strict=True) if size != 1)
        if len(dimensions) == len(kept):
            return operands[0]
        return replace(old, shape=shape, operands=operands, attributes=BroadcastAttributes(dimensions))
    if opcode is Opcode.TRANSPOSE:
        source_position: dict[int, int] = {}
        for d, size in enumerate(old.operands[0].shape.dimensions):
            if size != 1:
                source_position[d] = len(source_position)
        permutation = tuple(source_position[d] for d in old.attributes.dimensions if d in source_position)
        if permutation == tuple(range(len(permutation))):
            return operands[0]
        return replace(old, shape=shape, operands=operands, attributes=TransposeAttributes(permutation))
    if opcode is Opcode.IOTA and old.attributes.iota_dimension in position:
        return replace(old, shape=shape, attributes=IotaAttributes(position[old.attributes.iota_dimension]))
    if opcode is Opcode.REVERSE:
        reverse = ReverseAttributes(tuple(position[d] for d in old.attributes.dimensions if d in position))
        return replace(old, shape=shape, operands=operands, attributes=reverse)
    if opcode is Opcode.GATHER:
        return with_same_bounds(replace(old, shape=shape, operands=operands, attributes=squeezed_gather(old)), old)
    if opcode in (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE) and 0 not in window_sizes(old):
        return _squeezed_window(old, operands)
    # All other ops keep the rank until the next reshape.
    full = tuple(reshaped(n, o.shape.dimensions) for n, o in zip(operands, old.operands, strict=True))
    return reshaped(replace(old, shape=_array_like(old, old.shape.dimensions), operands=full), kept)


def _squeezed_reduce(old: HloInstruction, operands: tuple[HloInstruction, ...]) -> HloInstruction:
    arrays = old.operands[: len(old.operands) // 2]
    sizes = arrays[0].shape.dimensions
    position = {d: i for i, d in enumerate(d for d, size in enumerate(sizes) if size != 1)}
    dimensions = tuple(sorted(position[d] for d in old.attributes.dimensions if d in position))
    return make_instruction(Opcode.REDUCE, operands, ReduceAttributes(dimensions, old.attributes.to_apply))


def _squeezed_window(old: HloInstruction, operands: tuple[HloInstruction, ...]) -> HloInstruction:
    """A dynamic-slice or dynamic-update-slice without the dimensions in which its array has one place only: an update
    of an array with such dimensions stays the root, so that it is written in place."""
    dimensions = [d for d, size in enumerate(old.operands[0].shape.dimensions) if size != 1]
    window, fits = window_sizes(old), in_bounds(old)
    sizes = [window[d] for d in dimensions]
    is_update = old.opcode is Opcode.DYNAMIC_UPDATE_SLICE
    starts = tuple(operands[(2 if is_update else 1) + d] for d in dimensions)
    if is_update:
        new = replace(
            old, shape=_array_like(old, _kept(old.shape)), operands=(operands[0], reshaped(operands[1], sizes), *starts)
        )
    else:
        new = replace(
            old, shape=_array_like(old, sizes), operands=(operands[0], *starts),
            attributes=DynamicSliceAttributes(tuple(sizes)),
        )  # fmt: skip
    new = with_in_bounds(new, [k for k, d in enumerate(dimensions) if d in fits])
    return reshaped(new, _kept(old.shape))


Boundary = tuple[HloInstruction, int]
"""The boundary between dimensions d and d + 1 of an instruction."""


class _Boundaries:
    """The boundaries between dimensions: which of them are kept or removed together, and which must be kept."""

    def __init__(self) -> None:
        self._parent: dict[Boundary, Boundary] = {}
        self._stands: set[Boundary] = set()

    def find(self, boundary: Boundary) -> Boundary:
        parent = self._parent.setdefault(boundary, boundary)
        while parent != boundary:
            grandparent = self._parent[parent]
            self._parent[boundary] = grandparent
            boundary, parent = parent, grandparent
        return parent

    def link(self, a: Boundary, b: Boundary) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra != rb:
            self._parent[ra] = rb
            if ra in self._stands:
                self._stands.add(rb)

    def keep(self, boundary: Boundary) -> None:
        self._stands.add(self.find(boundary))

    def keep_all(self, instruction: HloInstruction) -> None:
        for d in range(instruction.shape.rank - 1):
            self.keep((instruction, d))

    def stands(self, boundary: Boundary) -> bool:
        return self.find(boundary) in self._stands


def _collapse(fused: FusedBody) -> FusedBody:
    computation = fused.computation
    boundaries = _Boundaries()
    for instruction in computation.instructions:
        _constrain(boundaries, instruction)
    parameters = {p.attributes.number: p for p in computation.parameters}
    roots = roots_of(computation)
    placed = [(parameters[k], place) for k, place in fused.parameter_places.items()]
    placed += [(roots[k], place) for k, place in fused.root_places.items()]
    for instruction, place in placed:
        for d in range(instruction.shape.rank - 1):
            if not place.may_merge(d, instruction.shape.dimensions[d + 1]):
                boundaries.keep((instruction, d))
    for group in alignment_of(computation):
        for value in group.values[1:]:
            for d in range(group.rank - 1):
                boundaries.link((value, d), (group.values[0], d))
    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        mapping[old] = _collapsed(boundaries, old, tuple(mapping[o] for o in old.operands))

    def merged(number: int, place: PhysicalLayout, arrays: Mapping[int, HloInstruction]) -> PhysicalLayout:
        return place.merged(_groups(boundaries, arrays[number]))

    return FusedBody(
        _rebuild(computation, mapping),
        {k: merged(k, place, parameters) for k, place in fused.parameter_places.items()},
        {k: merged(k, place, dict(enumerate(roots))) for k, place in fused.root_places.items()},
    )


def _link_through(
    boundaries: _Boundaries, result: HloInstruction, operand: HloInstruction, source: Sequence[int | None]
) -> None:
    """Dimension d of `result` is dimension `source[d]` of `operand` (None: `operand` does not have it)."""
    reached = set()
    for d in range(len(source) - 1):
        here, there = source[d], source[d + 1]
        if here is None and there is None:
            continue
        if here is not None and there == here + 1:
            boundaries.link((result, d), (operand, here))
            reached.add(here)
        else:
            boundaries.keep((result, d))
    for d in range(operand.shape.rank - 1):
        if d not in reached:
            boundaries.keep((operand, d))


def _constrain(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode is Opcode.GET_TUPLE_ELEMENT:
        for d in range(instruction.shape.rank - 1):
            boundaries.link((instruction, d), (instruction.operands[0], d))
        return
    if not instruction.operands or opcode is Opcode.TUPLE:
        if opcode is Opcode.CONSTANT:
            boundaries.keep_all(instruction)
        if opcode is Opcode.IOTA:
            for d in (attributes.iota_dimension - 1, attributes.iota_dimension):
                if 0 <= d < instruction.shape.rank - 1:
                    boundaries.keep((instruction, d))
        return
    operand = instruction.operands[0]
    if is_elementwise(instruction):
        for source in instruction.operands:
            if source.shape.rank:
                for d in range(source.shape.rank - 1):
                    boundaries.link((instruction, d), (source, d))
        return
    if opcode is Opcode.BROADCAST:
        where = {d: e for e, d in enumerate(attributes.dimensions)}
        _link_through(boundaries, instruction, operand, [where.get(d) for d in range(instruction.shape.rank)])
    elif opcode is Opcode.TRANSPOSE:
        _link_through(boundaries, instruction, operand, attributes.dimensions)
    elif opcode is Opcode.REDUCE:
        _constrain_reduce(boundaries, instruction)
    elif opcode in (Opcode.SLICE, Opcode.REVERSE):
        touched = _touched(instruction)
        for d in range(instruction.shape.rank - 1):
            if touched[d] or touched[d + 1]:
                boundaries.keep((instruction, d))
                boundaries.keep((operand, d))
            else:
                boundaries.link((instruction, d), (operand, d))
    elif opcode is Opcode.GATHER:
        _constrain_gather(boundaries, instruction)
    else:
        boundaries.keep_all(instruction)
        for source in instruction.operands:
            boundaries.keep_all(source)


def _constrain_gather(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    linked: set[tuple[int | None, int]] = set()
    for d, operand, e in merging_neighbours(instruction):
        boundaries.link((instruction, d), (instruction.operands[operand], e))
        linked |= {(None, d), (operand, e)}
    # An array may be both operands, and each use may have boundaries that must be kept.
    for role, value in ((None, instruction), *enumerate(instruction.operands)):
        for d in range(value.shape.rank - 1):
            if (role, d) not in linked:
                boundaries.keep((value, d))


def _touched(instruction: HloInstruction) -> list[bool]:
    """For slice and reverse: which dimensions the op changes."""
    rank, attributes = instruction.shape.rank, instruction.attributes
    if instruction.opcode is Opcode.REVERSE:
        return [d in attributes.dimensions for d in range(rank)]
    sizes = instruction.operands[0].shape.dimensions
    return [
        (attributes.start_indices[d], attributes.limit_indices[d], attributes.strides[d]) != (0, sizes[d], 1)
        for d in range(rank)
    ]


def _constrain_reduce(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    reduced = set(instruction.attributes.dimensions)
    arrays = instruction.operands[: len(instruction.operands) // 2]
    first = arrays[0]
    for other in arrays[1:]:
        for d in range(first.shape.rank - 1):
            boundaries.link((first, d), (other, d))
    kept = [d for d in range(first.shape.rank) if d not in reduced]
    for d in range(first.shape.rank - 1):
        if (d in reduced) != (d + 1 in reduced):
            boundaries.keep((first, d))
    for i in range(len(kept) - 1):
        if kept[i + 1] == kept[i] + 1:
            boundaries.link((instruction, i), (first, kept[i]))
        else:
            boundaries.keep((instruction, i))


def _groups(boundaries: _Boundaries, instruction: HloInstruction) -> list[list[int]]:
    groups: list[list[int]] = []
    for d in range(instruction.shape.rank):
        if d and not boundaries.stands((instruction, d - 1)):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _collapsed(
    boundaries: _Boundaries, old: HloInstruction, operands: tuple[HloInstruction, ...]
) -> HloInstruction:
    opcode, attributes = old.opcode, old.attributes
    if opcode is Opcode.TUPLE:
        return make_instruction(opcode, operands)
    if opcode is Opcode.GET_TUPLE_ELEMENT:
        return make_instruction(opcode, operands, attributes)
    if opcode is Opcode.REDUCE:
        first = old.operands[0]
        reduced = set(attributes.dimensions)
        dimensions = tuple(i for i, g in enumerate(_groups(boundaries, first)) if g[0] in reduced)
        return make_instruction(opcode, operands, ReduceAttributes(dimensions, attributes.to_apply))
    groups = _groups(boundaries, old)
    if len(groups) == old.shape.rank and all(a is b for a, b in zip(operands, old.operands, strict=True)):
        return old
    sizes = old.shape.dimensions
    merged = tuple(math.prod(sizes[d] for d in g) for g in groups)
    position = {d: i for i, g in enumerate(groups) for d in g}
    if opcode is Opcode.BROADCAST:
        dimensions = tuple(dict.fromkeys(position[d] for d in attributes.dimensions))
        attributes = BroadcastAttributes(dimensions)
    elif opcode is Opcode.TRANSPOSE:
        source_groups = _groups(boundaries, old.operands[0])
        source = {d: i for i, g in enumerate(source_groups) for d in g}
        attributes = TransposeAttributes(tuple(source[old.attributes.dimensions[g[0]]] for g in groups))
        if attributes.dimensions == tuple(range(len(groups))):
            return operands[0]
    elif opcode is Opcode.IOTA:
        attributes = IotaAttributes(position[attributes.iota_dimension])
    elif opcode is Opcode.REVERSE:
        attributes = ReverseAttributes(tuple(position[d] for d in attributes.dimensions))
    elif opcode is Opcode.GATHER:
        array, indices = (_groups(boundaries, o) for o in old.operands)
        attributes = collapsed_gather(attributes, groups, array, indices)
    elif opcode is Opcode.SLICE and len(groups) < old.shape.rank:
        attributes = SliceAttributes(
            tuple(attributes.start_indices[g[0]] for g in groups),
            tuple(attributes.limit_indices[g[0]] if len(g) == 1 else merged[i] for i, g in enumerate(groups)),
            tuple(attributes.strides[g[0]] for g in groups),
        )
    new = replace(old, shape=_array_like(old, merged), operands=operands, attributes=attributes)
    return with_same_bounds(new, old) if opcode is Opcode.GATHER else new

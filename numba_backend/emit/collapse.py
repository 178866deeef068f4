"""Canonical fused computations: no dimensions of size 1, and neighbours merged that are always next to each other.

Both change the view, not the memory: arrays are row-major here, and the `PhysicalLayout` of an array that is not says
which dimensions may be merged. They make the loop nests as shallow as possible, and equal for programs that
differ only in rank: adding [32,28,28,8] arrays is the same kernel as adding [802816] ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_

from ...hlo.analyses.in_bounds import in_bounds, window_sizes, with_in_bounds
from ...hlo.builder import make_instruction
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.layout import row_major
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ...hlo.ops.reduce import ReduceAttributes
from ...hlo.shape import Shape
from ...hlo.support.disjoint_sets import DisjointSets
from ...hlo.support.lazy import lazy_property
from ...hlo.support.records import dataclass
from .alignment import alignment_of
from .collapse_gather import Groups, merging_neighbours, positions, regrouped_gather, with_same_bounds
from .flatten import flattened
from .physical_layouts import PhysicalLayout, PhysicalLayouts, physical_layout_of
from .stage_plan import StagePlan


@dataclass(frozen=True, eq=False)
class FusedBody:
    """A canonical fused computation, and the places of its arrays that are not in row-major order."""

    computation: HloComputation
    parameter_places: PhysicalLayouts
    """The layouts, by the number of the parameter."""
    root_places: PhysicalLayouts
    """The layouts, by the number of the output."""

    @lazy_property
    def stage_plan(self) -> StagePlan:
        """The stages of a computation with reductions."""
        return StagePlan(self.computation)

    @property
    def is_identity(self) -> bool:
        """True when the one output is the one operand, element by element, at the same offsets."""
        root = self.computation.root
        source = root.operands[0] if root.opcode is Opcode.COPY else root
        same = self.parameter_places.get(0) == self.root_places.get(0)
        return source.opcode is Opcode.PARAMETER and len(self.computation.parameters) == 1 and same


def canonical(computation: HloComputation) -> FusedBody:
    """An equal computation on arrays of the lowest rank; parameters and roots keep their order and element counts."""
    computation = flattened(computation) or computation
    parameters = {p.attributes.number: physical_layout_of(p.shape) for p in computation.parameters}
    roots = {k: physical_layout_of(r.shape) for k, r in enumerate(computation.roots)}
    return _collapse(
        FusedBody(
            _regroup(computation, lambda i: [[d] for d, size in enumerate(i.shape.dimensions) if size != 1]),
            {k: place for k, place in parameters.items() if place is not None},
            {k: place for k, place in roots.items() if place is not None},
        )
    )


GroupsOf = Callable[[HloInstruction], Groups]
"""How the dimensions of an array are regrouped: those of each group become one, and those in no group, which have size
1, are left out."""


def reshaped(operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    """`operand` seen with other dimensions; `operand` itself if they are the same. Looks through a reshape."""
    if operand.shape.dimensions == tuple(dimensions):
        return operand
    if operand.opcode is Opcode.RESHAPE:
        return reshaped(operand.operands[0], dimensions)
    return make_instruction(Opcode.RESHAPE, (operand,), shape=Shape.array(operand.shape.element, dimensions))


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


def _regroup(computation: HloComputation, groups_of: GroupsOf) -> HloComputation:
    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        mapping[old] = _regrouped(old, tuple([mapping[o] for o in old.operands]), groups_of)
    return _rebuild(computation, mapping)


_VIEWS = frozenset((Opcode.RESHAPE, Opcode.BITCAST, Opcode.BROADCAST, Opcode.TRANSPOSE))
"""They may be the operand itself in dimensions that are merged, or without those of size 1."""


def _regrouped(old: HloInstruction, operands: tuple[HloInstruction, ...], groups_of: GroupsOf) -> HloInstruction:
    """`old` on operands that have been regrouped, with a result that is."""
    opcode, attributes = old.opcode, old.attributes
    kept = all(map(is_, operands, old.operands))
    if opcode is Opcode.TUPLE or opcode is Opcode.GET_TUPLE_ELEMENT:
        return old if kept else make_instruction(opcode, operands, attributes)
    if opcode is Opcode.REDUCE:
        reduced = tuple([n for n, g in enumerate(groups_of(old.operands[0])) if g[0] in attributes.dimensions])
        if kept and reduced == attributes.dimensions:
            return old
        return make_instruction(opcode, operands, ReduceAttributes(reduced, attributes.to_apply))
    if opcode is Opcode.COPY and operands[0].opcode in (Opcode.REDUCE, Opcode.GET_TUPLE_ELEMENT):
        return operands[0]  # in another layout, but nests look for accumulators among the outputs
    sizes = old.shape.dimensions
    groups, rank = groups_of(old), len(sizes)
    if len(groups) < rank:
        sizes = tuple([math.prod([old.shape.dimensions[d] for d in g]) for g in groups])
    elif kept and opcode not in _VIEWS and old.shape.layout == row_major(rank):
        return old
    if opcode in (Opcode.RESHAPE, Opcode.BITCAST):
        return reshaped(operands[0], sizes)
    if opcode is Opcode.CONSTANT:
        return reshaped(old, sizes)
    if opcode is Opcode.BROADCAST:
        source, position = groups_of(old.operands[0]), positions(groups)
        if len(source) == len(groups):
            return operands[0]
        attributes = BroadcastAttributes(tuple([position[attributes.dimensions[g[0]]] for g in source]))
    elif opcode is Opcode.TRANSPOSE:
        there = positions(groups_of(old.operands[0]))
        attributes = TransposeAttributes(tuple([there[attributes.dimensions[g[0]]] for g in groups]))
        if attributes.dimensions == tuple(range(len(groups))):
            return operands[0]
    shape = Shape.array(old.shape.element, sizes)
    if kept and shape == old.shape:
        return old
    if opcode in (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE) and 0 not in window_sizes(old):
        return reshaped(_window_regrouped(old, operands, groups_of(old.operands[0])), sizes)
    if is_elementwise(old) or opcode in (Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.PARAMETER):
        return old.with_form(shape, operands, attributes)
    position = positions(groups)
    if opcode is Opcode.IOTA and attributes.iota_dimension in position:
        attributes = IotaAttributes(position[attributes.iota_dimension])
    elif opcode is Opcode.CONCATENATE and all(len(positions(groups_of(v))) == rank for v in (*old.operands, old)):
        attributes = ConcatenateAttributes(position[attributes.dimension])
    elif opcode is Opcode.REVERSE:
        attributes = ReverseAttributes(tuple([position[d] for d in attributes.dimensions if d in position]))
    elif opcode is Opcode.GATHER:
        attributes = regrouped_gather(old, groups, *map(groups_of, old.operands))
        return with_same_bounds(old.with_form(shape, operands, attributes), old)
    elif opcode is Opcode.SLICE and len(position) == rank:
        attributes = SliceAttributes(
            tuple([attributes.start_indices[g[0]] for g in groups]),
            tuple([attributes.limit_indices[g[0]] if len(g) == 1 else n for g, n in zip(groups, sizes, strict=True)]),
            tuple([attributes.strides[g[0]] for g in groups]),
        )
    else:
        # Other ops keep the rank until the next reshape.
        operands = tuple([reshaped(n, o.shape.dimensions) for n, o in zip(operands, old.operands, strict=True)])
        whole = Shape.array(old.shape.element, old.shape.dimensions)
        return reshaped(old.with_form(whole, operands, attributes), sizes)
    return old.with_form(shape, operands, attributes)


def _window_regrouped(old: HloInstruction, operands: tuple[HloInstruction, ...], array: Groups) -> HloInstruction:
    """A dynamic-slice or dynamic-update-slice of a regrouped array, in the dimensions that its array has: an update of
    an array with dimensions of size 1 stays the root, so that it is written in place."""
    dimensions = [g[0] for g in array]
    window, fits = window_sizes(old), in_bounds(old)
    sizes = tuple([window[d] for d in dimensions])
    is_update = old.opcode is Opcode.DYNAMIC_UPDATE_SLICE
    starts = tuple([operands[(2 if is_update else 1) + d] for d in dimensions])
    if is_update:
        new = replace(old, shape=operands[0].shape, operands=(operands[0], reshaped(operands[1], sizes), *starts))
    else:
        shape, attributes = Shape.array(old.shape.element, sizes), DynamicSliceAttributes(sizes)
        new = replace(old, shape=shape, operands=(operands[0], *starts), attributes=attributes)
    return with_in_bounds(new, [k for k, d in enumerate(dimensions) if d in fits])


Boundary = tuple[HloInstruction, int]
"""The boundary between dimensions d and d + 1 of an instruction."""


_Boundaries = DisjointSets[Boundary | None]
"""The boundaries that are kept or removed together. Those in the set of None must be kept."""


def _collapse(fused: FusedBody) -> FusedBody:
    computation = fused.computation
    if all(i.shape.rank < 2 for i in computation.instructions):
        return fused
    boundaries: _Boundaries = DisjointSets()
    for instruction in computation.instructions:
        _constrain(boundaries, instruction)
    parameters = {p.attributes.number: p for p in computation.parameters}
    roots = computation.roots
    placed = [(parameters[k], place) for k, place in fused.parameter_places.items()]
    placed += [(roots[k], place) for k, place in fused.root_places.items()]
    for instruction, place in placed:
        for d in range(instruction.shape.rank - 1):
            if not place.may_merge(d, instruction.shape.dimensions[d + 1]):
                boundaries.unite((instruction, d), None)
    for group in alignment_of(computation):
        for value in group.values[1:]:
            for d in range(group.rank - 1):
                boundaries.unite((value, d), (group.values[0], d))

    def merged(number: int, place: PhysicalLayout, arrays: Mapping[int, HloInstruction]) -> PhysicalLayout:
        return place.merged(groups[arrays[number]])

    groups = {i: _groups(boundaries, i) for i in computation.instructions if i.shape.is_array}
    if all(len(found) == i.shape.rank for i, found in groups.items()):
        return fused
    return FusedBody(
        _regroup(computation, groups.__getitem__),
        {k: merged(k, place, parameters) for k, place in fused.parameter_places.items()},
        {k: merged(k, place, dict(enumerate(roots))) for k, place in fused.root_places.items()},
    )


RESULT = -1

Side = tuple[int, int]
"""The boundary between dimensions d and d + 1 of an operand, by its number, or of the `RESULT`: (number, d)."""


def _constrain(boundaries: _Boundaries, instruction: HloInstruction) -> None:
    """Link the boundaries that the instruction can only remove together, and keep those that it cannot remove."""
    if instruction.opcode in (Opcode.TUPLE, Opcode.PARAMETER):
        return
    if is_elementwise(instruction) or instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
        for operand in instruction.operands:
            if operand.shape.is_tuple or operand.shape.rank:
                for d in range(instruction.shape.rank - 1):
                    boundaries.unite((instruction, d), (operand, d))
        return
    values = (*instruction.operands, instruction)  # an array may be both operands, with other boundaries in each
    ranks = [v.shape.rank if v.shape.is_array else next(v.shape.leaves()).rank for v in values]
    if max(ranks) < 2:
        return
    removable: set[Side] = set()
    for sides in _removable(instruction):
        removable.update(sides)
        for number, d in sides[1:]:
            boundaries.unite((values[number], d), (values[sides[0][0]], sides[0][1]))
    for number in range(RESULT, len(instruction.operands)):
        for d in range(ranks[number] - 1):
            if (number, d) not in removable:
                boundaries.unite((values[number], d), None)


def _removable(instruction: HloInstruction) -> Iterator[tuple[Side, ...]]:
    """The boundaries that the instruction can remove, each with the others that it removes with it."""
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode is Opcode.REDUCE:
        rank, count = instruction.operands[0].shape.rank, len(instruction.operands) // 2
        kept = [d for d in range(rank) if d not in attributes.dimensions]
        for d in range(rank - 1):
            if (d in kept) == (d + 1 in kept):
                result = ((RESULT, kept.index(d)),) if d in kept else ()
                yield (*[(k, d) for k in range(count)], *result)
        return
    if opcode is Opcode.GATHER:
        yield from [((RESULT, d), (operand, e)) for d, operand, e in merging_neighbours(instruction)]
        return
    boundaries = range(instruction.shape.rank - 1)
    if opcode is Opcode.BROADCAST or opcode is Opcode.TRANSPOSE:
        source: Mapping[int, int] = dict(enumerate(attributes.dimensions))
        if opcode is Opcode.BROADCAST:
            source = {d: e for e, d in source.items()}
        for d in boundaries:
            if d in source and source.get(d + 1) == source[d] + 1:
                yield (RESULT, d), (0, source[d])
            elif d not in source and d + 1 not in source:
                yield ((RESULT, d),)
    elif opcode in (Opcode.SLICE, Opcode.REVERSE, Opcode.IOTA, Opcode.CONCATENATE):
        changed = _changed(instruction)
        operand = range(len(instruction.operands))
        yield from [((RESULT, d), *[(k, d) for k in operand]) for d in boundaries if not {d, d + 1} & changed]


def _changed(instruction: HloInstruction) -> set[int]:
    """The dimensions that a slice, a reverse, an iota or a concatenation goes along in its own way."""
    a = instruction.attributes
    if instruction.opcode is Opcode.CONCATENATE:
        return {a.dimension}
    if instruction.opcode is Opcode.IOTA:
        return {a.iota_dimension}
    if instruction.opcode is Opcode.REVERSE:
        return set(a.dimensions)
    sizes = instruction.operands[0].shape.dimensions
    ranges = zip(a.start_indices, a.limit_indices, a.strides, strict=True)
    return {d for d, found in enumerate(ranges) if found != (0, sizes[d], 1)}


def _groups(boundaries: _Boundaries, instruction: HloInstruction) -> Groups:
    groups: list[list[int]] = []
    kept = boundaries.find(None)
    for d in range(instruction.shape.rank):
        if d and boundaries.find((instruction, d - 1)) != kept:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups

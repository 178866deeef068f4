"""slices-of-loops: a loop reads windows of whole arrays instead of slices, and writes into the array that its results
are joined to.

    rest = slice(x, 1:)                     # a copy of x but for a row
    ys = while(i, zeros, rest): ys[i] = f(rest[i])
    result = concatenate(first, ys)         # a copy of ys

Here the loop takes x itself and reads x[i + 1], and it writes row i + 1 of an array that begins as `first` and zeros.
So a loop with its first step before it, as in ``scan(f, x[0], x[1:])``, copies nothing. An index is clamped as for the
smaller array first; `range-simplifier` removes that where the index is known to be in range: it must come after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...analyses.in_bounds import window_sizes, with_in_bounds
from ...analyses.trip_count import state_element
from ...builder import make_constant, make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ...effects import needed_by
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction, HloModule, post_order
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.movement import ConcatenateAttributes, SliceAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import splat_literal
from ..rewrite import map_computations, rewrite_computation
from .loops import has_tuple_state, initial_element, is_only_written, unchanged_elements

_INDICES = (ElementType.S32, ElementType.S64)


@dataclass(frozen=True, slots=True)
class SlicesOfLoops:
    """Takes slices before loops, and concatenations after them, into the loops' own reading and writing."""

    name: str = "slices-of-loops"
    least: int = 65
    """Elements of a part: a smaller one is copied in no time, and a loop may hold it in registers."""

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, lambda computation: _rewritten(computation, self.least))


@dataclass(frozen=True, slots=True)
class _View:
    """An element of a loop's state becomes a larger array; it was the part that begins at `offsets`."""

    whole: HloInstruction
    part: Shape
    offsets: tuple[int, ...]

    def starts(self, window: Sequence[int], starts: Sequence[HloInstruction]) -> list[HloInstruction]:
        """The start indices in the whole array of a window of the part."""
        found = []
        sizes = zip(window, starts, self.offsets, self.part.dimensions, self.whole.shape.dimensions, strict=True)
        for extent, start, offset, size, whole in sizes:
            if size == whole:
                found.append(start)
                continue
            dtype = start.shape.element.dtype
            low, high, by = [make_constant(np.asarray(v, dtype), dtype) for v in (0, size - extent, offset)]
            inside = make_instruction(Opcode.CLAMP, (low, start, high))
            found.append(make_instruction(Opcode.ADD, (inside, by)) if offset else inside)
        return found


def _rewritten(computation: HloComputation, least: int) -> HloComputation:
    if all(i.opcode is not Opcode.WHILE for i in computation.instructions):
        return computation
    computation = rewrite_computation(computation, _through_tuple)  # the results of inlined calls are in tuples
    loops = [i for i in computation.instructions if i.opcode is Opcode.WHILE and _has_elements(i)]
    joins = {loop: _joins(computation, loop, least) for loop in loops}
    joined: dict[HloInstruction, HloInstruction] = {}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old in joins:
            slices = _slices(moved, least)
            views = slices | _views_of_results(moved, joins[old], outside, least)
            if not views:
                return moved
            larger = _on_whole_arrays(moved, views)
            found = [make_get_tuple_element(larger, k) for k in range(len(larger.shape.elements))]
            joined.update({join: found[k] for k, join in joins[old].items() if k in views})
            return make_tuple([initial_element(moved, k) if k in slices else found[k] for k in range(len(found))])
        if old in joined:
            return joined[old]
        return _through_tuple(old, moved)

    outside: dict[HloInstruction, HloInstruction] = {}

    def kept(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        outside[old] = found = visit(old, moved)
        return found

    return rewrite_computation(_in_order(computation, joins), kept)


def _through_tuple(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
    """An element of a tuple that is made in the same computation."""
    if moved.opcode is Opcode.GET_TUPLE_ELEMENT and moved.operands[0].opcode is Opcode.TUPLE:
        return make_get_tuple_element(moved.operands[0], moved.attributes.index)
    return moved


def _has_elements(loop: HloInstruction) -> bool:
    """True for a loop with computations that use its state element by element."""
    if not has_tuple_state(loop):
        return False
    computations = (loop.attributes.condition, loop.attributes.body)
    return all(i.opcode is Opcode.GET_TUPLE_ELEMENT for c in computations for i in c.users[c.parameters[0]])


# Slices that a loop reads


def _slices(loop: HloInstruction, least: int) -> dict[int, _View]:
    """The unchanging elements of the state that are slices without strides, and that are read in windows only."""
    found = {}
    body: HloComputation = loop.attributes.body
    for k in unchanged_elements(loop):
        value = _sliced_last(initial_element(loop, k))
        if value.opcode is not Opcode.SLICE or set(value.attributes.strides) != {1} or value.shape.num_elements < least:
            continue
        elements = body.state_elements.get(k, ())
        readers = [u for i in elements for u in body.users[i] if u is not body.root]
        is_passed = k in loop.attributes.condition.state_elements
        if is_passed or not readers or not all(_reads_window(u, elements) for u in readers):
            continue
        found[k] = _View(value.operands[0], value.shape, tuple(value.attributes.start_indices))
    return found


def _sliced_last(value: HloInstruction) -> HloInstruction:
    """A transposed slice as a slice of the transposed array: batches of loops are moved so."""
    if value.opcode is not Opcode.TRANSPOSE or value.operands[0].opcode is not Opcode.SLICE:
        return value
    (part,), order = value.operands, value.attributes.dimensions
    (array,), a = part.operands, part.attributes
    whole = make_instruction(Opcode.TRANSPOSE, (array,), value.attributes, metadata=value.metadata)
    turned = [tuple([sizes[d] for d in order]) for sizes in (a.start_indices, a.limit_indices, a.strides)]
    return make_instruction(Opcode.SLICE, (whole,), SliceAttributes(*turned), metadata=part.metadata)


def _reads_window(user: HloInstruction, elements: Sequence[HloInstruction]) -> bool:
    return (
        user.opcode is Opcode.DYNAMIC_SLICE
        and user.operands[0] in elements
        and all(o.shape.element in _INDICES for o in user.operands[1:])
    )


# Concatenations of the arrays that a loop writes


def _joins(computation: HloComputation, loop: HloInstruction, least: int) -> dict[int, HloInstruction]:
    """By element of the state: the concatenation that is its only use, if the other operands do not need the loop."""
    users = computation.users
    if loop is computation.root or any(u.opcode is not Opcode.GET_TUPLE_ELEMENT for u in users[loop]):
        return {}
    by_index: dict[int, list[HloInstruction]] = {}
    for element in users[loop]:
        by_index.setdefault(element.attributes.index, []).append(element)
    found = {}
    for k, elements in by_index.items():
        element = elements[0]
        if len(elements) > 1 or element is computation.root or len(users[element]) != 1:
            continue
        (join,) = users[element]
        if join.opcode is not Opcode.CONCATENATE or join.operands.count(element) != 1 or len(join.operands) == 1:
            continue
        if _is_only_written(loop, k, least) and loop not in needed_by([o for o in join.operands if o is not element]):
            found[k] = join
    return found


def _is_only_written(loop: HloInstruction, k: int, least: int) -> bool:
    """True for an element that starts with one number everywhere, if each step replaces a window of it."""
    if not is_only_written(loop, k):
        return False
    update = loop.attributes.body.root.operands[k]
    return (
        update.shape.num_elements >= least
        and all(o.shape.element in _INDICES for o in update.operands[2:])
        and splat_literal(initial_element(loop, k)) is not None
    )


def _views_of_results(
    loop: HloInstruction, joins: Mapping[int, HloInstruction], outside: Mapping[HloInstruction, HloInstruction],
    least: int,
) -> dict[int, _View]:  # fmt: skip
    """The whole array begins as the concatenation, with the element's initial value in the place of its result."""
    found = {}
    for k, join in joins.items():
        if not _is_only_written(loop, k, least):
            continue
        start, d, before = initial_element(loop, k), join.attributes.dimension, 0
        parts: list[HloInstruction] = []
        for operand in join.operands:
            if operand in outside:
                parts.append(outside[operand])
            else:
                before = sum(p.shape.dimensions[d] for p in parts)
                parts.append(start)
        whole = make_instruction(Opcode.CONCATENATE, tuple(parts), ConcatenateAttributes(d), metadata=join.metadata)
        found[k] = _View(whole, start.shape, tuple([before if e == d else 0 for e in range(start.shape.rank)]))
    return found


def _in_order(
    computation: HloComputation, joins: Mapping[HloInstruction, Mapping[int, HloInstruction]]
) -> HloComputation:
    """The computation with all that is joined to a loop's results before the loop."""
    if not any(joins.values()):
        return computation
    order: dict[HloInstruction, None] = {}
    for i in computation.instructions:
        for k, join in joins.get(i, {}).items():
            others = [o for o in join.operands if not (o.operands and o.operands[0] is i and o.attributes.index == k)]
            for other in reversed(others):
                order.update(dict.fromkeys(post_order(other)))
        order[i] = None
    return HloComputation(computation.name, tuple(order), computation.root)


# The loop


def _on_whole_arrays(loop: HloInstruction, views: Mapping[int, _View]) -> HloInstruction:
    count = len(loop.shape.elements)
    state = make_tuple([views[k].whole if k in views else initial_element(loop, k) for k in range(count)])
    body: HloComputation = loop.attributes.body
    parameter = make_parameter(0, state.shape, body.parameters[0].name)

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        index = state_element(old)
        if old is body.parameters[0]:
            return parameter
        if index is not None:
            return make_get_tuple_element(parameter, index)
        if old is body.root:
            return make_tuple(moved.operands)
        element = state_element(old.operands[0]) if old.operands else None
        view = None if element is None else views.get(element)
        if view is None:
            return moved
        first = 1 if old.opcode is Opcode.DYNAMIC_SLICE else 2
        starts = view.starts(window_sizes(old), moved.operands[first:])
        shape = old.shape if first == 1 else moved.operands[0].shape
        new = replace(moved, operands=(*moved.operands[:first], *starts), shape=shape)
        return with_in_bounds(new, ())

    condition: HloComputation = loop.attributes.condition
    tested = make_parameter(0, state.shape, condition.parameters[0].name)

    def visit_condition(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        index = state_element(old)
        if old is condition.parameters[0]:
            return tested
        return moved if index is None else make_get_tuple_element(tested, index)

    attributes = WhileAttributes(rewrite_computation(condition, visit_condition), rewrite_computation(body, visit))
    return make_instruction(Opcode.WHILE, (state,), attributes, metadata=loop.metadata)

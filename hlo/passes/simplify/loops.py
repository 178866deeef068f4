"""Helpers of passes on loops: rebuilding a WHILE with other elements in its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...analyses.trip_count import body_results, state_element
from ...builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.structure import GetTupleElementAttributes
from ..rewrite import map_computations, rebuild, rewrite_computation


def has_tuple_state(loop: HloInstruction) -> bool:
    """True for a loop in the usual form: tuples in and out, so that its elements can be told apart."""
    return loop.operands[0].shape.is_tuple and body_results(loop.attributes.body) is not None


def unchanged_elements(loop: HloInstruction) -> set[int]:
    """The state's elements that the body returns as it got them."""
    results = body_results(loop.attributes.body)
    return set() if results is None else {k for k, result in enumerate(results) if state_element(result) == k}


def is_unchanged(loop: HloInstruction, k: int) -> bool:
    """True for an element of the state that the body returns as it got it."""
    results = body_results(loop.attributes.body)
    return results is not None and state_element(results[k]) == k


def is_only_written(loop: HloInstruction, k: int) -> bool:
    """True for an array in the state if each step replaces a window of it, and nothing in the loop reads it."""
    body: HloComputation = loop.attributes.body
    results = body_results(body)
    if results is None:
        return False
    update = results[k]
    if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or state_element(update.operands[0]) != k:
        return False
    users = [u for i in body.state_elements[k] for u in body.users[i]]
    computations = (body, loop.attributes.condition)
    return (
        users == [update]
        and update.operands.count(update.operands[0]) == 1
        and list(body.users[update]) == [body.root]
        and results.count(update) == 1
        and k not in loop.attributes.condition.state_elements
        # nothing takes the state as a whole
        and all(len(c.users[c.parameters[0]]) == sum(map(len, c.state_elements.values())) for c in computations)
    )


def initial_element(loop: HloInstruction, index: int) -> HloInstruction:
    """Element `index` of the loop's operand."""
    return make_get_tuple_element(loop.operands[0], index)


def rewrite_loops(module: HloModule, change: Callable[[HloInstruction], HloInstruction | None]) -> HloModule:
    """The module with `change(loop)` in the place of each loop with a tuple as its state: a tuple of the same type, or
    None where the loop stays."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode is Opcode.WHILE and has_tuple_state(moved):
            return change(moved) or moved
        if moved.opcode is Opcode.GET_TUPLE_ELEMENT and moved.operands[0] is not old.operands[0]:
            return make_get_tuple_element(moved.operands[0], moved.attributes.index)  # through the new tuple
        return moved

    def rewritten(computation: HloComputation) -> HloComputation:
        return rewrite_computation(computation, visit) if Opcode.WHILE in computation.opcodes else computation

    return map_computations(module, rewritten)


def with_added(
    loop: HloInstruction,
    added: Sequence[HloInstruction],
    replaced: Mapping[HloInstruction, int],
    following: Sequence[HloInstruction] | None = None,
) -> HloInstruction:
    """The result of the loop with more elements in its state: see `with_state`."""
    count = len(loop.shape.elements)
    larger = with_state(loop, range(count), added, replaced, following)
    return make_tuple([make_get_tuple_element(larger, k) for k in range(count)])


def with_state(
    loop: HloInstruction,
    kept: Sequence[int],
    added: Sequence[HloInstruction] = (),
    replaced: Mapping[HloInstruction, int] | None = None,
    following: Sequence[HloInstruction] | None = None,
) -> HloInstruction:
    """The loop with the elements `kept` of its state, then `added` ones that never change.

    `replaced`: instructions of the body that are replaced by the added element of that number. `following`:
    instructions of the body whose values the added elements have in the next step. Condition and body must not need an
    element that is not kept.
    """
    condition, body = loop.attributes.condition, loop.attributes.body
    state = make_tuple([*(initial_element(loop, k) for k in kept), *added])
    place = {old: new for new, old in enumerate(kept)}

    new_body = _on_new_state(body, state, place, added, replaced or {}, kept, following)
    new_condition = _on_new_state(condition, state, place, (), {}, None)
    return make_instruction(Opcode.WHILE, (state,), WhileAttributes(new_condition, new_body), metadata=loop.metadata)


def _on_new_state(
    computation: HloComputation,
    state: HloInstruction,
    place: Mapping[int, int],
    added: Sequence[HloInstruction],
    replaced: Mapping[HloInstruction, int],
    kept: Sequence[int] | None,
    following: Sequence[HloInstruction] | None = None,
) -> HloComputation:
    """A copy of a condition (`kept` is None) or of a body on the new state, without instructions that need dropped
    elements."""
    old_parameter = computation.parameters[0]
    parameter = make_parameter(0, state.shape, old_parameter.name)
    extra = [make_get_tuple_element(parameter, len(place) + n) for n in range(len(added))]
    mapping = {old: extra[n] for old, n in replaced.items()}
    for old in computation.instructions:
        if old in mapping:
            continue
        index = state_element(old)
        if index is not None:
            if index in place:
                mapping[old] = replace(old, operands=(parameter,), attributes=GetTupleElementAttributes(place[index]))
        elif old is old_parameter:
            if len(place) == len(old.shape.elements):  # it may be passed on as a whole
                mapping[old] = make_tuple([make_get_tuple_element(parameter, place[k]) for k in range(len(place))])
        elif all(o in mapping for o in old.operands):
            mapping[old] = replace(old, operands=tuple(mapping[o] for o in old.operands))
    if kept is not None:
        results = computation.root.operands
        ends = extra if following is None else [mapping[i] for i in following]
        mapping[computation.root] = make_tuple([*(mapping[results[k]] for k in kept), *ends])
    mapping[old_parameter] = parameter
    return rebuild(computation, mapping)

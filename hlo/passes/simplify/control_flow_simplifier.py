"""control-flow-simplifier: loops and branches with a known course, and loop state that is not needed.

A rule that replaces a caller by the instructions of its computation also returns their side effects. Source: XLA's
WhileLoopSimplifier, WhileLoopConstantSinking and ConditionalSimplifier.
"""

from __future__ import annotations

from dataclasses import replace

from ...analyses.trip_count import body_results, known_trip_count, state_element
from ...builder import make_get_tuple_element, make_tuple
from ...effects import effects_of
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...provenance import note_made
from ...support.records import dataclass
from ..patterns import is_progression, splat_literal, splat_value
from ..rewrite import clone_computation, cloned_effects, rewrite_computation
from ..rewriter import RewriteLog, apply_rules
from ..rules import Replacement, RuleSet, Site, rule
from .counters import count_with_another, counters_in_step, equal_elements
from .loops import has_tuple_state, initial_element, is_unchanged, unchanged_elements, with_state


def _inlined(computation: HloComputation, operand: HloInstruction) -> Replacement:
    """A computation of one parameter, run where it is called."""
    root, copies = clone_computation(computation, {computation.parameters[0]: operand})
    return Replacement(root, cloned_effects(computation, copies))


def never_runs(loop: HloInstruction) -> Replacement | None:
    """A loop that runs 0 times is its initial state; its condition runs once, and must have no side effects."""
    if known_trip_count(loop) != 0 or effects_of(loop.attributes.condition):
        return None
    return Replacement(loop.operands[0])


def runs_once(loop: HloInstruction) -> Replacement | None:
    """A loop that runs once is its body, where the condition has no side effects."""
    if known_trip_count(loop) != 1 or effects_of(loop.attributes.condition):
        return None
    return _inlined(loop.attributes.body, loop.operands[0])


def constant_state(loop: HloInstruction) -> Replacement | None:
    """An element of the state that starts as a constant (or a broadcast one, or a range of numbers) and never changes
    is that constant in condition and body."""
    if not has_tuple_state(loop):
        return None
    known: dict[int, HloInstruction] = {}
    for k in unchanged_elements(loop):
        value = initial_element(loop, k)
        if splat_literal(value) is not None or value.opcode is Opcode.CONSTANT or is_progression(value):
            known[k] = value

    def replaced(computation: HloComputation) -> HloComputation:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            index = state_element(old)
            value = known.get(index) if index is not None else None
            return moved if value is None or old in passed_on else _copy_of(value)

        # The body's root still returns its own element: this shows other rules that it never changes.
        is_body = computation is loop.attributes.body
        users = computation.users
        passed_on = {i for i in users if is_body and all(u is computation.root for u in users[i])}
        new = rewrite_computation(computation, visit)
        return _with_unchanged_root(new, known) if is_body and new is not computation else new

    attributes = loop.attributes.map_computations(replaced) if known else loop.attributes
    return None if attributes is loop.attributes else Replacement(replace(loop, attributes=attributes))


def _with_unchanged_root(body: HloComputation, known: dict[int, HloInstruction]) -> HloComputation:
    """The body returning the elements `known` as it got them."""
    results = body_results(body)
    assert results is not None
    parameter = body.parameters[0]
    new = [make_get_tuple_element(parameter, k) if k in known else r for k, r in enumerate(results)]
    root = make_tuple(new)
    note_made(root, (body.root,))
    order = dict.fromkeys(i for i in body.instructions if i is not body.root)
    order.update(dict.fromkeys(new))
    order[root] = None
    return HloComputation(body.name, tuple(order), root)


def _copy_of(value: HloInstruction) -> HloInstruction:
    """A constant, or a value computed from constants and iotas, for another computation."""
    return replace(value, operands=tuple(_copy_of(o) for o in value.operands))


def dead_state(loop: HloInstruction, site: Site) -> HloInstruction | None:
    """Elements of the state that neither a user, nor the condition, nor a side effect, nor an element in use depends
    on are dropped."""
    if not has_tuple_state(loop):
        return None
    used = _used_elements(site.computation, site.instruction)
    results = body_results(loop.attributes.body)
    assert results is not None
    everything = (1 << len(results)) - 1
    in_body = _dependences(loop.attributes.body, everything)
    condition: HloComputation = loop.attributes.condition
    in_condition = _dependences(condition, everything)
    live = in_condition[condition.root]
    for effect in effects_of(condition):
        live |= in_condition[effect]
    for effect in effects_of(loop.attributes.body):
        live |= in_body[effect]
    for k in used:
        live |= 1 << k
    while True:
        grown = live
        for k, result in enumerate(results):
            if live >> k & 1:
                grown |= in_body[result]
        if grown == live:
            break
        live = grown
    if live == everything:
        return None
    kept = [k for k in range(len(results)) if live >> k & 1]
    smaller = with_state(loop, kept)
    place = {k: n for n, k in enumerate(kept)}
    return make_tuple(
        [
            make_get_tuple_element(smaller, place[k]) if k in place else initial_element(loop, k)
            for k in range(len(results))
        ]
    )


def _dependences(computation: HloComputation, everything: int) -> dict[HloInstruction, int]:
    """Per instruction the elements of the state that it depends on, as bits."""
    found: dict[HloInstruction, int] = {}
    for instruction in computation.instructions:
        index = state_element(instruction)
        if index is not None:
            found[instruction] = 1 << index
        elif instruction.opcode is Opcode.PARAMETER:
            found[instruction] = everything
        else:
            bits = 0
            for operand in instruction.operands:
                bits |= found[operand]
            found[instruction] = bits
    return found


def _used_elements(computation: HloComputation, loop: HloInstruction) -> set[int]:
    """The elements of a loop's result that its computation takes out."""
    everything = set(range(len(loop.shape.elements))) if loop.shape.is_tuple else set()
    if loop is computation.root:
        return everything
    used: set[int] = set()
    for user in computation.users.get(loop, ()):
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return everything
        used.add(user.attributes.index)
    return used


def unchanged_result(element: HloInstruction) -> HloInstruction | None:
    """get-tuple-element of a loop, for an element that the loop never changes, is the initial element."""
    loop = element.operands[0]
    if loop.opcode is not Opcode.WHILE or not has_tuple_state(loop):
        return None
    index = element.attributes.index
    return initial_element(loop, index) if is_unchanged(loop, index) else None


def known_branch(conditional: HloInstruction) -> Replacement | None:
    """A conditional with a constant index, or with one branch, is the branch taken."""
    index, *operands = conditional.operands
    branches = conditional.attributes.branch_computations
    value = splat_value(index)
    if value is None and len(branches) > 1:
        return None
    if value is None:
        taken = 0
    elif isinstance(value, bool) or value.dtype == bool:
        taken = 0 if value else 1
    else:
        taken = int(value) if 0 <= value < len(branches) else len(branches) - 1
    return _inlined(branches[taken], operands[taken])


def repeated_operand(conditional: HloInstruction) -> HloInstruction | None:
    """Where a branch gets one value as several elements of its operand, it reads the first of them: so that later
    passes see that it reads the array that it updates."""
    pairs = dict(zip(conditional.attributes.branch_computations, conditional.operands[1:], strict=False))
    if len(pairs) < len(conditional.operands) - 1:
        return None  # a computation that is several branches
    attributes = conditional.attributes.map_computations(
        lambda branch: _with_first_elements(branch, pairs[branch]) if pairs[branch].opcode is Opcode.TUPLE else branch
    )
    return None if attributes is conditional.attributes else replace(conditional, attributes=attributes)


def _with_first_elements(branch: HloComputation, operand: HloInstruction) -> HloComputation:
    first: dict[HloInstruction, int] = {}
    same = [first.setdefault(value, k) for k, value in enumerate(operand.operands)]
    if len(first) == len(same):
        return branch
    parameter = branch.parameters[0]
    known = {k: i for i in reversed(branch.instructions) if (k := state_element(i)) is not None}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        index = state_element(old)
        if index is None or same[index] == index:
            return moved
        return known.setdefault(same[index], make_get_tuple_element(parameter, same[index]))

    return rewrite_computation(branch, visit)


RULES = RuleSet(
    (
        rule(unchanged_result, Opcode.GET_TUPLE_ELEMENT),
        rule(never_runs, Opcode.WHILE),
        rule(runs_once, Opcode.WHILE),
        rule(constant_state, Opcode.WHILE),
        rule(equal_elements, Opcode.WHILE),
        rule(count_with_another, Opcode.WHILE),
        rule(counters_in_step, Opcode.WHILE),
        rule(dead_state, Opcode.WHILE, sees_users=True),
        rule(known_branch, Opcode.CONDITIONAL),
        rule(repeated_operand, Opcode.CONDITIONAL),
    )
)


@dataclass(frozen=True, slots=True)
class ControlFlowSimplifier:
    """One walk over all computations; it must run until nothing changes."""

    name: str = "control-flow-simplifier"
    rules: RuleSet = RULES

    def __call__(self, module: HloModule) -> HloModule:
        return self.rewrite(module, RewriteLog())

    def rewrite(self, module: HloModule, log: RewriteLog) -> HloModule:
        return apply_rules(module, self.rules, log)

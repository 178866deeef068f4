"""carried-values: a value that a loop computes of its next state is not computed again in the next step.

    (q, v) -> (q', v + f(q) + f(q'))   ->   (q, v, p) -> (q', v + p + p', p')  with p' = f(q'); it starts with p = f(q)

An instruction that becomes another one of the body when each element of the state is replaced by its next value has the
value of that other one in the step before. So the leapfrog of an orbit evaluates its force once a step, as by hand.
Source of the idea: predictive commoning of compilers for loops over arrays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from ...analyses.cost import operations_of
from ...analyses.trip_count import body_results, induction_variable, state_element
from ...effects import has_side_effect, needed_by
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...provenance import note_replacements
from ...support.records import dataclass
from .loop_invariant_code_motion import BOUND, is_computed_again, outside_of_loop
from .loops import initial_element, rewrite_loops, with_added

_OF_FUNCTION = 10
"""Operations that a transcendental one, a quotient or a root counts as."""
_ROUNDS = 4
"""Values that do not pay make those that they are computed from be looked at, so many times."""


@dataclass(frozen=True, slots=True)
class CarriedValues:
    """Carries the values that take `least` operations or more for each of their elements; `least_of_large` if they have
    more than `cached` bytes: these go through memory."""

    least: int = 10
    least_of_large: int = 40
    cached: int = 1 << 18
    fewest_steps: int = 4
    """A loop with fewer steps does not gain back the code before it."""
    name: str = "carried-values"

    def __call__(self, module: HloModule) -> HloModule:
        return rewrite_loops(module, self._carried)

    def _carried(self, loop: HloInstruction) -> HloInstruction | None:
        """The loop's result with such values in its state; None if it has none."""
        counter = induction_variable(loop)
        if counter is not None and counter.trip_count < self.fewest_steps:
            return None
        body: HloComputation = loop.attributes.body
        following = _following(body)
        chosen = self._chosen(body, {i for i, next_ in following.items() if _is_value(i) and next_ is not i})
        if not chosen:
            return None
        places = {i: n for n, i in enumerate(chosen)}
        return with_added(loop, _before(loop, chosen), places, [following[i] for i in chosen])

    def _chosen(self, body: HloComputation, values: set[HloInstruction]) -> list[HloInstruction]:
        """The values that pay, of those that have one from the step before."""
        for _ in range(_ROUNDS):
            spared = _spared(body, values)
            poor = [i for i, operations in spared.items() if not self._pays(i, operations)]
            if not poor:
                return list(spared)
            values = values.difference(poor)
        return []

    def _pays(self, value: HloInstruction, operations: int) -> bool:
        is_large = value.shape.byte_size > self.cached
        return operations >= value.shape.num_elements * (self.least_of_large if is_large else self.least)


def _following(body: HloComputation) -> dict[HloInstruction, HloInstruction]:
    """For instructions of a loop's body: those that have, in this step, the value that they have in the next one."""
    results = body_results(body)
    assert results is not None
    alike: defaultdict[tuple[object, ...], list[HloInstruction]] = defaultdict(list)
    for i in body.instructions:
        if i.operands:
            alike[i.opcode, i.operands].append(i)
    following: dict[HloInstruction, HloInstruction] = {}
    for i in body.instructions:
        index = state_element(i)
        if index is not None:
            following[i] = results[index]
        elif i.opcode in (Opcode.CONSTANT, Opcode.IOTA):
            following[i] = i
        elif i.operands and i.opcode not in BOUND and all(o in following for o in i.operands):
            operands = tuple([following[o] for o in i.operands])
            if has_side_effect(i) or i.shape.is_tuple:
                continue
            if operands == i.operands:
                following[i] = i
                continue
            for other in alike.get((i.opcode, operands), ()):
                if other.shape == i.shape and other.attributes == i.attributes:
                    following[i] = other
                    break
    return following


def _is_value(instruction: HloInstruction) -> bool:
    return state_element(instruction) is None and not is_computed_again(instruction)


def _spared(body: HloComputation, values: Collection[HloInstruction]) -> dict[HloInstruction, int]:
    """The values that others need, and how many operations are spared if these get them from the state: their own, and
    those of the instructions that no other one needs."""
    spared: dict[HloInstruction, int] = {}
    for_value: dict[HloInstruction, HloInstruction] = {}
    known: dict[HloComputation, Counter[str]] = {}
    for i in reversed(body.instructions):
        needed_for = [for_value.get(user) for user in body.users[i]]
        own = needed_for[0] if needed_for and None not in needed_for else i if i in values else None
        if own is not None:
            for_value[i] = own
            spared[own] = spared.get(own, 0) + _operations(i, known)
    return spared


def _operations(instruction: HloInstruction, known: dict[HloComputation, Counter[str]]) -> int:
    factor = _OF_FUNCTION if has_trait(instruction.opcode, Trait.EXPENSIVE | Trait.ELEMENTWISE) else 1
    return factor * operations_of(instruction, known)


def _before(loop: HloInstruction, values: list[HloInstruction]) -> list[HloInstruction]:
    """The values of the first step, before the loop."""
    needed, before = needed_by(values), dict[HloInstruction, HloInstruction]()
    for i in loop.attributes.body.instructions:
        index = state_element(i)
        if index is not None:
            before[i] = initial_element(loop, index)
        elif i in needed and i.opcode is not Opcode.PARAMETER:
            before[i] = outside_of_loop(i, tuple([before[o] for o in i.operands]))
    note_replacements({i: before[i] for i in needed if i in before})
    return [before[i] for i in values]

"""memory-scheduling: chooses the order in which instructions run, so that little memory is needed at once.

Each computation tries two orders: that of the program, and a greedy one (always the ready instruction that frees most
and allocates least). The one with the smaller peak is used; on a tie the program's, which is close to its author's
thinking. Side effects keep their order. In the body of a loop, an instruction that computes a part of the next state is
then moved after the last use of the part that it replaces, if possible: it can then be written in place, without a copy
in every iteration. Source of the idea: XLA's ListMemoryScheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise

from ...analyses.trip_count import body_results, state_element
from ...buffers.values import is_alias
from ...effects import effects_of, has_side_effect
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ..rewrite import map_each_computation

Order = tuple[HloInstruction, ...]


@dataclass(frozen=True, slots=True)
class MemoryScheduler:
    """Orders the instructions of every computation except reducers and bodies of fusions; marks the module."""

    name: str = "memory-scheduling"

    def __call__(self, module: HloModule) -> HloModule:
        reducers: set[HloComputation] = set()
        bodies: set[HloComputation] = set()
        for instruction in module.instructions():
            if has_trait(instruction.opcode, Trait.APPLIES):
                reducers.update(instruction.called_computations())
            elif instruction.opcode is Opcode.WHILE:
                bodies.add(instruction.attributes.body)

        def schedule(old: HloComputation, computation: HloComputation) -> HloComputation:
            if old in reducers:
                return computation
            ordered = _schedule(computation)
            return _update_late(ordered) if old in bodies else ordered

        scheduled = map_each_computation(module, schedule)
        return scheduled if scheduled.is_scheduled else replace(scheduled, is_scheduled=True)


def _schedule(computation: HloComputation) -> HloComputation:
    if len(computation.instructions) < 4:
        return computation
    memory = _Memory(computation)
    greedy = _greedy_order(computation, memory)
    if memory.peak(greedy) >= memory.peak(computation.instructions):
        return computation
    return HloComputation(computation.name, greedy, computation.root)


class _Memory:
    """What each instruction allocates, and whose memory it uses. Parameters and constants exist anyway."""

    def __init__(self, computation: HloComputation) -> None:
        self.size: dict[HloInstruction, int] = {}
        self.holds: dict[HloInstruction, tuple[HloInstruction, ...]] = {}
        """The instructions in whose memory a value is: itself, or the ones that it is an alias of."""
        self.uses: dict[HloInstruction, tuple[HloInstruction, ...]] = {}
        """The memory that an instruction keeps alive until it has run."""
        self.last_users: dict[HloInstruction, int] = {}
        """Number of users of each piece of memory; the root's is never freed."""
        for instruction in computation.instructions:
            used = tuple(dict.fromkeys(h for o in instruction.operands for h in self.holds[o]))
            self.uses[instruction] = used
            for holder in used:
                self.last_users[holder] += 1
            if instruction.opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
                self.size[instruction], self.holds[instruction] = 0, ()
            elif is_alias(instruction):
                self.size[instruction], self.holds[instruction] = 0, used
            else:
                self.size[instruction], self.holds[instruction] = instruction.shape.byte_size, (instruction,)
                self.last_users[instruction] = 0
        for holder in self.holds[computation.root]:
            self.last_users[holder] += 1

    def peak(self, order: Sequence[HloInstruction]) -> int:
        """The most bytes alive at once when running in `order`."""
        users = dict(self.last_users)
        now = peak = 0
        for instruction in order:
            now += self.size[instruction]
            peak = max(peak, now)
            for holder in self.uses[instruction]:
                users[holder] -= 1
                if not users[holder]:
                    now -= self.size[holder]
            if users.get(instruction) == 0:
                now -= self.size[instruction]
        return peak


def _greedy_order(computation: HloComputation, memory: _Memory) -> Order:
    """Always the ready instruction with the largest difference of bytes freed and allocated; on a tie the first in
    the program."""
    position = {i: n for n, i in enumerate(computation.instructions)}
    waiting = {i: len(set(i.operands)) for i in computation.instructions}
    effects = effects_of(computation)
    next_effect = dict(pairwise(effects))
    for effect in effects[1:]:
        waiting[effect] += 1
    left = dict(memory.last_users)
    users_of: dict[HloInstruction, list[HloInstruction]] = {holder: [] for holder in left}
    for instruction in computation.instructions:
        for holder in memory.uses[instruction]:
            users_of[holder].append(instruction)

    def gain(instruction: HloInstruction) -> int:
        freed = sum(memory.size[h] for h in memory.uses[instruction] if left[h] == 1)
        return freed - memory.size[instruction]

    order: list[HloInstruction] = []
    done: set[HloInstruction] = set()
    ready: list[tuple[int, int]] = []
    best: dict[HloInstruction, int] = {}

    def offer(instruction: HloInstruction) -> None:
        value = gain(instruction)
        if best.get(instruction) != value:
            best[instruction] = value
            heappush(ready, (-value, position[instruction]))

    for instruction in computation.instructions:
        if not waiting[instruction]:
            offer(instruction)
    while ready:
        value, number = heappop(ready)
        instruction = computation.instructions[number]
        if instruction in done or best[instruction] != -value:
            continue  # its gain has grown since
        done.add(instruction)
        order.append(instruction)
        for holder in memory.uses[instruction]:
            left[holder] -= 1
            if left[holder] == 1:  # its last user would free it
                for user in users_of[holder]:
                    if user not in done and not waiting[user]:
                        offer(user)
        following = next_effect.get(instruction)
        for user in (*computation.users[instruction], *([] if following is None else [following])):
            waiting[user] -= 1
            if not waiting[user]:
                offer(user)
    return tuple(order)


def _update_late(body: HloComputation) -> HloComputation:
    """A loop's body in which each new element of the state is computed after the last use of the old one, unless one of
    its own users comes before that."""
    results = body_results(body)
    if results is None:
        return body
    holders = _holders(body)
    users: dict[HloInstruction, set[HloInstruction]] = {}
    for instruction in body.instructions:
        if not is_alias(instruction):
            for operand in instruction.operands:
                for holder in holders[operand]:
                    users.setdefault(holder, set()).add(instruction)
    elements: dict[int, list[HloInstruction]] = {}
    for instruction in body.instructions:
        index = state_element(instruction)
        if index is not None:
            elements.setdefault(index, []).append(instruction)
    order = list(body.instructions)
    position = {instruction: n for n, instruction in enumerate(order)}
    for k, result in enumerate(results):
        made_by = holders[result]
        old = elements.get(k, [])
        if len(made_by) != 1 or has_side_effect(made_by[0]):
            continue
        if made_by[0] not in old and state_element(made_by[0]) is None:
            last_uses = {u for i in old for u in users.get(i, ())} - {made_by[0]}
            _move_behind(order, position, made_by[0], last_uses)
    if tuple(order) == body.instructions:
        return body
    return HloComputation(body.name, tuple(order), body.root)


def _holders(body: HloComputation) -> dict[HloInstruction, tuple[HloInstruction, ...]]:
    """The instructions in whose memory a value is; each element of the state counts as one."""
    holders: dict[HloInstruction, tuple[HloInstruction, ...]] = {}
    for instruction in body.instructions:
        if state_element(instruction) is None and is_alias(instruction):
            holders[instruction] = tuple(dict.fromkeys(h for o in instruction.operands for h in holders[o]))
        else:
            holders[instruction] = (instruction,)
    return holders


def _move_behind(
    order: list[HloInstruction],
    position: dict[HloInstruction, int],
    instruction: HloInstruction,
    others: set[HloInstruction],
) -> None:
    """Move `instruction` (and aliases of its result) in `order` after the last of `others` if nothing before needs it.

    `position`: the index of each instruction in `order`.
    """
    start = position[instruction]
    end = max((position[other] for other in others), default=-1)
    if end < start:
        return
    moving = {instruction}
    staying = []
    for other in order[start : end + 1]:
        if any(o in moving for o in other.operands):
            if not is_alias(other):
                return
            moving.add(other)
        if other not in moving:
            staying.append(other)
    late = [i for i in order[start : end + 1] if i in moving]
    order[start : end + 1] = [*staying, *late]
    for number in range(start, end + 1):
        position[order[number]] = number

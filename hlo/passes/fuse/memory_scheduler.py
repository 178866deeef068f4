"""memory-scheduling: chooses the order in which instructions run, so that little memory is needed at once.

Each computation tries two orders: the program's order, and a greedy one (always the ready instruction that frees most
and allocates least). The one with the smaller peak is used; on a tie the program's, which is close to its author's
thinking. Side effects keep their order. Then updates of an array, and instructions that compute a part of a loop's next
state, are moved behind the last use of the memory that they overwrite, if possible (overwriting.py): they can then be
written in place, without a copy in every iteration. Source of the idea: XLA's ListMemoryScheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import pairwise

from ...buffers.values import is_alias
from ...effects import effects_of
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...support.records import dataclass
from ..rewrite import map_each_computation
from .overwriting import find_overwriting

Order = tuple[HloInstruction, ...]


@dataclass(frozen=True, slots=True)
class MemoryScheduler:
    """Orders the instructions of every computation except reducers and bodies of fusions; marks the module."""

    name: str = "memory-scheduling"

    def __call__(self, module: HloModule) -> HloModule:
        reducers: set[HloComputation] = set()
        for instruction in module.instructions():
            if has_trait(instruction.opcode, Trait.APPLIES):
                reducers.update(instruction.called_computations())

        def schedule(old: HloComputation, computation: HloComputation) -> HloComputation:
            return computation if old in reducers else _schedule(computation)

        scheduled = map_each_computation(module, schedule)
        overwriting = find_overwriting(scheduled, states=True)

        def update_late(old: HloComputation, computation: HloComputation) -> HloComputation:
            """The order that was found for `old`; some of its instructions may have been replaced since."""
            found = overwriting.get(old)
            if found is None or tuple(found.order) == old.instructions:
                return computation
            new = dict(zip(old.instructions, computation.instructions, strict=True))
            return HloComputation(computation.name, tuple([new[i] for i in found.order]), computation.root)

        scheduled = map_each_computation(scheduled, update_late)
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
    """The memory that each instruction allocates and uses. Parameters and constants exist anyway."""

    def __init__(self, computation: HloComputation) -> None:
        self.size: dict[HloInstruction, int] = {}
        self.holds: dict[HloInstruction, tuple[HloInstruction, ...]] = {}
        """The instructions that own a value's memory: itself, or the instructions that it is an alias of."""
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

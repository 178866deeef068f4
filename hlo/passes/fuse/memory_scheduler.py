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

from ...buffers.values import FirstLeaves, is_alias, leaf_count
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
    """The pieces of memory, by number: one for each array that an instruction makes. Piece 0 is all that exists anyway:
    parameters and constants."""

    def __init__(self, computation: HloComputation) -> None:
        self.sizes = [0]
        self.made: dict[HloInstruction, Sequence[int]] = {}
        """The pieces that an instruction allocates."""
        self.allocated: dict[HloInstruction, int] = {}
        """The bytes of these."""
        self.uses: dict[HloInstruction, tuple[int, ...]] = {}
        """The pieces that an instruction keeps alive until it has run."""
        self.last_users = [0]
        """Number of users of each piece; those of the root are never freed."""
        holds: dict[HloInstruction, Sequence[int]] = {}
        """The piece of each leaf of a value."""
        firsts = FirstLeaves()
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode is Opcode.GET_TUPLE_ELEMENT:  # not all leaves of its operand: there are as many such instructions
                tuple_ = instruction.operands[0]
                first, index = firsts.of(tuple_.shape), instruction.attributes.index
                held = holds[tuple_][first[index] : first[index + 1]]
            else:
                held = [piece for o in instruction.operands for piece in holds[o]]
            self.uses[instruction] = used = tuple(dict.fromkeys(filter(None, held)))
            for piece in used:
                self.last_users[piece] += 1
            made, size = range(0), 0
            if opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
                holds[instruction] = (0,) * leaf_count(instruction.shape)
            elif is_alias(instruction):
                holds[instruction] = held
            else:
                sizes = [leaf.byte_size for leaf in instruction.shape.leaves()]
                holds[instruction] = made = range(len(self.sizes), len(self.sizes) + len(sizes))
                self.sizes += sizes
                size = sum(sizes)
                self.last_users += [0] * len(sizes)
            self.made[instruction], self.allocated[instruction] = made, size
        for piece in holds[computation.root]:
            self.last_users[piece] += 1

    def peak(self, order: Sequence[HloInstruction]) -> int:
        """The most bytes alive at once when running in `order`."""
        users = self.last_users.copy()
        sizes = self.sizes
        now = peak = 0
        for instruction in order:
            now += self.allocated[instruction]
            peak = max(peak, now)
            for piece in self.uses[instruction]:
                users[piece] -= 1
                if not users[piece]:
                    now -= sizes[piece]
            for piece in self.made[instruction]:
                if not users[piece]:
                    now -= sizes[piece]
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
    left = memory.last_users.copy()
    users_of: list[list[HloInstruction]] = [[] for _ in left]
    for instruction in computation.instructions:
        for piece in memory.uses[instruction]:
            users_of[piece].append(instruction)

    def gain(instruction: HloInstruction) -> int:
        freed = sum([memory.sizes[piece] for piece in memory.uses[instruction] if left[piece] == 1])
        return freed - memory.allocated[instruction]

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
        for piece in memory.uses[instruction]:
            left[piece] -= 1
            if left[piece] == 1:  # its last user would free it
                for user in users_of[piece]:
                    if user not in done and not waiting[user]:
                        offer(user)
        following = next_effect.get(instruction)
        for user in (*computation.users[instruction], *([] if following is None else [following])):
            waiting[user] -= 1
            if not waiting[user]:
                offer(user)
    return tuple(order)

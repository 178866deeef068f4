"""The order in which fusion visits a long program: the last reader of a value comes as early as it can.

A kernel has a limit, so a long program is cut, and all values that cross a cut go through memory. A tracer's order, or
one from the root up, may cross many. With `num = num + w * s` and `den = den + w` repeated, such an order computes all
of one sum first and then the other, and keeps every `w` for it. Here each instruction is followed by its users that are
the last readers of some operand: this does not increase the number of live values, and the two sums advance together.
"""

from __future__ import annotations

from ...effects import effects_of
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from .fusible import is_fusible


def with_early_uses(computation: HloComputation) -> HloComputation:
    """The computation in that order; itself if the order does not change, or if it has side effects, since their order
    counts."""
    if effects_of(computation):
        return computation
    missing = {i: len(dict.fromkeys(i.operands)) for i in computation.instructions}
    readers = {i: len(users) for i, users in computation.users.items()}
    order: dict[HloInstruction, None] = {}
    for instruction in computation.instructions:
        stack = [instruction]
        while stack:
            node = stack.pop()
            if node in order or (node is not instruction and not _is_last_reader(node, readers)):
                continue
            order[node] = None
            for operand in dict.fromkeys(node.operands):
                readers[operand] -= 1
            users = dict.fromkeys(computation.users[node])
            for user in users:
                missing[user] -= 1
            # The only reader of an operand that is left is now its last one. Each operand is visited once.
            nearby = [
                u for o in dict.fromkeys(node.operands) if _is_computed(o) and readers[o] == 1
                for u in computation.users[o]
            ]
            stack += [u for u in (*reversed(nearby), *reversed(users)) if not missing[u] and u not in order]
    if tuple(order) == computation.instructions:
        return computation
    return HloComputation(computation.name, tuple(order), computation.root)


def _is_last_reader(node: HloInstruction, readers: dict[HloInstruction, int]) -> bool:
    """True for an instruction of a nest after which some operand that was computed is not needed any more."""
    return is_fusible(node) and any(readers[o] == 1 and _is_computed(o) for o in node.operands)


def _is_computed(value: HloInstruction) -> bool:
    return bool(value.operands) and value.opcode is not Opcode.PARAMETER

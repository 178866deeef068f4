"""The order in which fusion visits a long program: what is the last to read a value comes as early as it can.

A kernel has a limit, so a long program is cut, and all values that cross a cut go through memory. A tracer's order, or
one from the root up, may cross many. With `num = num + w * s` and `den = den + w` again and again, all of one sum comes
first, and then the other, for which every `w` is kept. Here each instruction is followed by its users that are the last
readers of some operand: after them no more values are alive than before, and the two sums grow side by side.
"""

from __future__ import annotations

from ...effects import effects_of
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from .fusible import is_fusible


def with_early_uses(computation: HloComputation) -> HloComputation:
    """The computation in that order; itself if its order stays, or if it has side effects, whose order counts."""
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
            # Every reader of an operand may now be the last one.
            nearby = [u for operand in dict.fromkeys(node.operands) for u in computation.users[operand]]
            stack += [u for u in (*reversed(nearby), *reversed(users)) if not missing[u] and u not in order]
    if tuple(order) == computation.instructions:
        return computation
    return HloComputation(computation.name, tuple(order), computation.root)


def _is_last_reader(node: HloInstruction, readers: dict[HloInstruction, int]) -> bool:
    """True for an instruction of a nest after which some operand that was computed is not needed any more."""
    return is_fusible(node) and any(
        readers[operand] == 1 and operand.operands and operand.opcode is not Opcode.PARAMETER
        for operand in node.operands
    )

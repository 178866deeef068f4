"""Sums in loops that go over few of the elements, as a mask between two numbers says: a row of a sparse matrix.

    mask = (i >= first) & (i < stop)
    sum(select(mask, x, 0) * y)

A native loop restricts such a sum to where its mask holds (`numba_backend/loops/masks.py`), so its time does not depend
on the number of elements. First and stop are known when the program runs. Here they are taken to be near each other, as
the numbers of a loop that looks at a part in each step; where they are not, the loop is right, and slower.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from ..ops.elementwise import ComparisonDirection as Direction

_UPWARDS = {Direction.GE: 1, Direction.GT: 1, Direction.LT: -1, Direction.LE: -1}
_THROUGH = frozenset({Opcode.MULTIPLY, Opcode.CONVERT, Opcode.NEGATE})


def in_loops(module: HloModule) -> Iterator[HloComputation]:
    """The bodies and conditions of loops, and the computations that they call."""
    pending = [c for i in module.instructions() if i.opcode is Opcode.WHILE for c in i.called_computations()]
    seen = set()
    while pending:
        computation = pending.pop()
        if computation not in seen:
            seen.add(computation)
            yield computation
            pending += [c for i in computation.callers for c in i.called_computations()]


def is_between(value: HloInstruction) -> bool:
    """True for a vector whose elements are masked but for those between two numbers that the program computes, or that
    has such a factor."""
    if value.opcode in _THROUGH:
        return any(map(is_between, value.operands))
    if value.opcode is not Opcode.SELECT or value.shape.rank != 1 or value.operands[0].opcode is not Opcode.AND:
        return False
    return {_bound(test) for test in value.operands[0].operands} == {1, -1}


def _bound(test: HloInstruction) -> int:
    """1 if the test is that positions are above a number, -1 if below; 0 for another one."""
    if test.opcode is not Opcode.COMPARE:
        return 0
    left, right = test.operands
    sign = _UPWARDS.get(test.attributes.direction, 0)
    if left.opcode is Opcode.BROADCAST:
        left, right, sign = right, left, -sign
    is_number = right.opcode is Opcode.BROADCAST and right.operands[0].opcode is not Opcode.CONSTANT
    return sign if left.opcode is Opcode.IOTA and is_number and not right.operands[0].shape.rank else 0

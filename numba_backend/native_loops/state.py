"""The state of an outlined loop: which of its results are stored over operands."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...hlo.analyses.batch import Batch
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from . import cost

_batches: WeakKeyDictionary[HloComputation, Batch | None] = WeakKeyDictionary()


def loop_in(fused: HloComputation) -> HloInstruction:
    """The loop of an outlined computation."""
    (loop,) = fused.roots[0].operands
    return loop


def batch_in(fused: HloComputation) -> Batch | None:
    """The batch that the loop of an outlined computation runs in parts; None if it runs as a whole."""
    if fused not in _batches:
        _batches[fused] = cost.batch_for(loop_in(fused))
    return _batches[fused]


def overwritten(fused: HloComputation) -> dict[int, int]:
    """Result -> the operand that it is stored over: the initial value of the same element of the state. If all parts of
    a batch read an operand, no part may change it."""
    batch = batch_in(fused)
    found: dict[int, int] = {}
    for number, result in enumerate(fused.roots):
        (loop,) = result.operands
        index = result.attributes.index
        state = loop.operands[0].operands
        initial = state[index]
        if initial.opcode is not Opcode.PARAMETER or initial.attributes.number in found.values():
            continue
        if batch is None or (batch.state[index] is not None and state.count(initial) == 1):
            found[number] = initial.attributes.number
    return found

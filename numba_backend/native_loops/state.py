"""The state of an outlined loop: which results take over the memory of which operands."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...hlo.analyses.batch import Batch
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from . import cost

_batches: WeakKeyDictionary[HloComputation, Batch | None] = WeakKeyDictionary()


def loop_in(fused: HloComputation) -> HloInstruction:
    """The loop of an outlined computation."""
    root = fused.root
    result = root.operands[0] if root.opcode is Opcode.TUPLE else root
    (loop,) = result.operands
    return loop


def batch_in(fused: HloComputation) -> Batch | None:
    """The batch for parts of which the loop of an outlined computation runs."""
    if fused not in _batches:
        _batches[fused] = cost.batch_for(loop_in(fused))
    return _batches[fused]


def overwritten(fused: HloComputation) -> dict[int, int]:
    """Result -> the operand whose memory it takes over: the initial value of the same element of the state. A part of a
    batch must find what all parts share as it was."""
    root = fused.root
    results = root.operands if root.opcode is Opcode.TUPLE else (root,)
    batch = batch_in(fused)
    found: dict[int, int] = {}
    for number, result in enumerate(results):
        (loop,) = result.operands
        index = result.attributes.index
        state = loop.operands[0].operands
        initial = state[index]
        if initial.opcode is not Opcode.PARAMETER or initial.attributes.number in found.values():
            continue
        if batch is None or (batch.state[index] is not None and state.count(initial) == 1):
            found[number] = initial.attributes.number
    return found

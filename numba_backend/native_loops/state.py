"""The state of an outlined loop: which results take over the memory of which operands."""

from __future__ import annotations

from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode


def overwritten(fused: HloComputation) -> dict[int, int]:
    """Result -> the operand whose memory it takes over: the initial value of the same element of the state."""
    root = fused.root
    results = root.operands if root.opcode is Opcode.TUPLE else (root,)
    found: dict[int, int] = {}
    for number, result in enumerate(results):
        (loop,) = result.operands
        initial = loop.operands[0].operands[result.attributes.index]
        if initial.opcode is Opcode.PARAMETER and initial.attributes.number not in found.values():
            found[number] = initial.attributes.number
    return found

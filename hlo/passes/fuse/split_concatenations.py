"""split-concatenations: a concatenation of very many parts becomes one of concatenations.

A nest has a limit for its instructions and operands (`FusionLimits`), because compile time grows faster than the length
of the code. A concatenation reads as many arrays as it has operands, so one with more than `most` is made in groups,
with one nest for each; the groups are joined afterwards, which copies them once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...support.records import dataclass
from ..rewrite import map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class SplitConcatenations:
    """Splits concatenations of more than `most` operands."""

    most: int
    name: str = "split-concatenations"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, self._split)

    def _split(self, computation: HloComputation) -> HloComputation:
        if not any(map(self._is_long, computation.instructions)):
            return computation
        return rewrite_computation(computation, self._visit)

    def _is_long(self, instruction: HloInstruction) -> bool:
        return instruction.opcode is Opcode.CONCATENATE and len(instruction.operands) > self.most

    def _visit(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if not self._is_long(old):
            return moved
        parts: Sequence[HloInstruction] = moved.operands
        while len(parts) > self.most:
            groups = [parts[k : k + self.most] for k in range(0, len(parts), self.most)]
            parts = [_joined(group, moved) for group in groups]
        return moved.with_operands(tuple(parts))


def _joined(parts: Sequence[HloInstruction], whole: HloInstruction) -> HloInstruction:
    if len(parts) == 1:
        return parts[0]
    return make_instruction(Opcode.CONCATENATE, tuple(parts), whole.attributes, metadata=whole.metadata)

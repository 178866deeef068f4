"""dce: what the root does not need goes; parameters stay, as they are the computation's signature.

Nothing in HLO acts but through its result: an opt-barrier that nobody uses is dead too. Source: XLA's HloDCE.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import HloComputation, HloModule
from ..opcode import Opcode
from .rewrite import map_computations, needed_by


@dataclass(frozen=True, slots=True)
class DeadCodeElimination:
    """Drops unused instructions of all computations but the bodies of fusions, and computations nobody calls."""

    name: str = "dce"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _without_dead_code)


def _without_dead_code(computation: HloComputation) -> HloComputation:
    live = needed_by(computation.root)
    kept = tuple([i for i in computation.instructions if i in live or i.opcode is Opcode.PARAMETER])
    if len(kept) == len(computation.instructions):
        return computation
    return HloComputation(computation.name, kept, computation.root)

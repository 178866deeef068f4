"""dce: drops instructions that neither the root nor a side effect needs. Parameters stay: they are the signature.

Side effects (`hlo/effects.py`) stay even if their results have no use: outfeed, send, custom calls that say that they
have one. An opt-barrier is not an effect: it is dead if its result has no use. Source: XLA's HloDCE.
"""

from __future__ import annotations

from ...effects import live_instructions
from ...ir import HloComputation, HloModule
from ...opcode import Opcode
from ...support.records import dataclass
from ..rewrite import map_computations


@dataclass(frozen=True, slots=True)
class DeadCodeElimination:
    """Drops unused instructions of all computations but the bodies of fusions, and computations without callers."""

    name: str = "dce"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _without_dead_code)


def _without_dead_code(computation: HloComputation) -> HloComputation:
    live = live_instructions(computation)
    kept = tuple([i for i in computation.instructions if i in live or i.opcode is Opcode.PARAMETER])
    if len(kept) == len(computation.instructions):
        return computation
    return HloComputation(computation.name, kept, computation.root)

"""From a fused computation to the text of one kernel: `emit_fusion`.

`element.py` and the files named after op families emit one element; `nest.py` and `nest_reduce.py` put loops around
elements; `collapse.py` and `sizes.py` make the text independent of ranks and sizes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...hlo.opcode import Opcode
from . import (  # noqa: F401 - each registers its rules
    elementwise,
    elsewhere,
    indexing,
    movement,
    reduce,
)
from .alignment import roots_of
from .collapse import FusedBody, canonical, structure_of
from .kernel import EmittedKernel
from .nest import emit_loop, emit_update
from .nest_reduce import emit_reduction
from .sharing import Sharing, is_update

__all__ = ["FusedBody", "Sharing", "canonical", "emit_fusion", "structure_of"]


def emit_fusion(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """The kernel of a canonical fused computation. `sharing`: output -> the operand whose buffer it overwrites."""
    body = fused.computation
    if any(i.opcode is Opcode.REDUCE for i in body.instructions):
        return emit_reduction(fused, sharing)
    if is_update(fused, roots_of(body)[0]):
        return emit_update(fused, sharing)
    return emit_loop(fused, sharing)

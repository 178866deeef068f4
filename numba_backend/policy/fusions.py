"""Choose the loop nest of a fused computation."""

from __future__ import annotations

from collections.abc import Mapping

from ..emit.alignment import reductions_of
from ..emit.collapse import FusedBody
from ..emit.nest import emit_loop, emit_update
from ..emit.nest_parts import emit_parts, many_parts
from ..emit.sharing import is_update
from ..emitted_kernel import EmittedKernel
from .reductions import reduction_kernel


def emit_fusion(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """The kernel of a canonical fused computation. `sharing`: output -> the operand that it overwrites."""
    body = fused.computation
    if reductions_of(body).main:
        return reduction_kernel(fused, sharing)
    if is_update(fused, body.roots[0]):
        return emit_update(fused, sharing)
    concatenation = many_parts(fused)
    if concatenation is not None:
        return emit_parts(fused, concatenation)
    return emit_loop(fused, sharing)

"""Expansion of topk where selecting elements one by one would be slow."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.sort import topk_by_sort
from ..emit.topk import is_selected


def large_topk(instruction: HloInstruction) -> HloInstruction | None:
    """topk of many elements, or of a small element type: `topk_by_sort`."""
    return None if is_selected(instruction) else topk_by_sort(instruction)

"""Expansion of topk where selecting elements one by one would be slow."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.sort import topk_by_sort

MAX_SELECTED = 64
"""The largest k up to which elements are inserted into the result one by one."""


def large_topk(instruction: HloInstruction) -> HloInstruction | None:
    """topk of many elements, or of a small element type: `topk_by_sort`."""
    if instruction.attributes.k <= MAX_SELECTED and not instruction.operands[0].shape.element.is_small:
        return None
    return topk_by_sort(instruction)

"""Expansion of a gather with slices that are empty along a dimension that its result does not have."""

from __future__ import annotations

from ...ir import HloInstruction
from ..patterns import make_splat


def gather_of_empty_slices(instruction: HloInstruction) -> HloInstruction | None:
    """XLA's answer where there is nothing to take an element from: zeros."""
    if 0 not in instruction.attributes.slice_sizes or not instruction.shape.num_elements:
        return None
    return make_splat(0, instruction.shape)

"""mark-in-bounds: marks indices that are known to be in range, so that their code needs no clamp.

Every dynamic-slice, dynamic-update-slice, gather and scatter in a module with loops gets the frontend attribute
`hloom.in_bounds`, with the dimensions along which its indices fit (`analyses/in_bounds.py`). The range of an index may
depend on the loop around it, and on that loop running at all. So this comes after the last pass that moves instructions
out of loops; passes that only merge or copy instructions within a computation may follow.
"""

from __future__ import annotations

from ...analyses.in_bounds import INDEXED, KEY, known_in_bounds, with_in_bounds
from ...analyses.ranges import Ranges, has_loops, known_ranges
from ...ir import HloComputation, HloInstruction, HloModule
from ...support.records import dataclass
from ..rewrite import calling, map_each_computation, rewrite_computation


@dataclass(frozen=True, slots=True)
class MarkInBounds:
    """Writes the proven facts, and removes the claims of earlier passes or of the module's author."""

    name: str = "mark-in-bounds"

    def __call__(self, module: HloModule) -> HloModule:
        found = known_ranges(module) if has_loops(module) else None
        if found is None and not any(_is_marked(i) for i in module.instructions()):
            return module
        new: dict[HloComputation, HloComputation] = {}

        def rewrite(old: HloComputation, current: HloComputation) -> HloComputation:
            def visit(i: HloInstruction, moved: HloInstruction) -> HloInstruction:
                moved = calling(moved, new) if new else moved
                return _marked(i, moved, found) if i.opcode in INDEXED else moved

            new[old] = changed = rewrite_computation(old, visit)
            return changed

        return map_each_computation(module, rewrite, inside_fusions=True)


def _is_marked(i: HloInstruction) -> bool:
    return bool(i.frontend_attributes) and any(key == KEY for key, _ in i.frontend_attributes)


def _marked(i: HloInstruction, moved: HloInstruction, ranges: Ranges | None) -> HloInstruction:
    return with_in_bounds(moved, () if ranges is None else known_in_bounds(i, ranges))

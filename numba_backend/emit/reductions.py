"""Choose the loop nest of a fused computation with reductions."""

from __future__ import annotations

from collections.abc import Mapping

from .alignment import reductions_of
from .collapse import FusedBody
from .nest_across import AcrossNest, plan_of
from .nest_columns import ColumnNest
from .nest_mixed import MixedNest
from .nest_rows import RowNest


def reduction_nest(fused: FusedBody, sharing: Mapping[int, int]) -> RowNest | ColumnNest:
    """The nest of a canonical fused computation with reductions. `sharing`: see `emit_fusion`."""
    reductions = reductions_of(fused.computation)
    if reductions.columns:
        return MixedNest(fused, sharing, reductions.main, reductions.columns)
    first = reductions.main[0]
    dimensions = first.attributes.dimensions
    is_columns = bool(dimensions) and first.operands[0].shape.rank - 1 not in dimensions
    if is_columns:
        return ColumnNest(fused, sharing, reductions.main)
    if plan := plan_of(fused, reductions.main):
        return AcrossNest(fused, sharing, reductions.main, plan)
    return RowNest(fused, sharing, reductions.main)

"""Emit loop programs (`loops/`) for HLO: `emit_fusion` for a fused computation; `lowering_rules/` calls other kernels.

`element.py` and the files named after op families emit one element; `nest.py` and `nest_*.py` put loops around
elements; `collapse.py` and `sizes.py` make the program independent of ranks and sizes. Scatter, sorts, windows and
convolutions have kernels of their own, written with `scalar_computations.py`.

The words that all files use:

* An *index* has one *component* for each dimension of an array.
* An *offset* is a number of elements from the start of a buffer: the expression in brackets after a pointer.
* The *place* of an array is the function from its index to its offset, where that is not the row-major one
  (`physical_layouts.py`); it is made of *digits* of the index. Where elements share bytes, an *element
  address* is an offset and a shift.
* A *row* is a line of elements along one dimension: the dimension that is sorted, scanned or reduced, or the last one.
  A *position* is a number that counts along a row.
* A value is *held* in the type in which it is computed, and *stored* in the type in memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import (  # noqa: F401 - each registers its rules
    elementwise,
    indexing,
    movement,
    reduce,
    unsupported,
)
from .alignment import reductions_of, roots_of
from .collapse import FusedBody, canonical, structure_of
from .kernel import EmittedKernel
from .nest import emit_loop, emit_update
from .nest_parts import emit_parts, many_parts
from .reductions import reduction_nest
from .sharing import Sharing, is_update

__all__ = ["FusedBody", "Sharing", "canonical", "emit_fusion", "structure_of"]


def emit_fusion(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """The kernel of a canonical fused computation. `sharing`: output -> the operand that it overwrites."""
    body = fused.computation
    if reductions_of(body).main:
        return reduction_nest(fused, sharing).emit()
    if is_update(fused, roots_of(body)[0]):
        return emit_update(fused, sharing)
    concatenation = many_parts(fused)
    if concatenation is not None:
        return emit_parts(fused, concatenation)
    return emit_loop(fused, sharing)

"""Emit loop programs (`loops/`) for HLO. `policy/fusions.py` calls the nests of fused computations, and
`lowering_rules/` calls other kernels.

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

from . import (  # noqa: F401 - each registers its rules
    elementwise,
    indexing,
    movement,
    reduce,
    unsupported,
)
from .collapse import FusedBody, canonical
from .sharing import Sharing

__all__ = ["FusedBody", "Sharing", "canonical"]

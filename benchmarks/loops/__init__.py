"""A group of loops: over small states, arrays updated in place, tables, grids, samplers, filters, small networks; and
gradients of them.

`CASES` has each by name. A case is data (`case.Loop`): program, arguments, sizes, references; so tests use them too.
`measure` times a case and its compilation, `summary` prints.
"""

from __future__ import annotations

from . import filters, grids, networks, samplers, scalars, tables, triangular, updates, vectors
from .case import Loop

MODULES = (scalars, vectors, updates, triangular, tables, grids, samplers, filters, networks)
CASES: dict[str, Loop] = {loop.name: loop for module in MODULES for loop in module.LOOPS}

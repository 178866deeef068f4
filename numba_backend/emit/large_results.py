"""Choose the results of nests that are written by non-temporal stores, row by row (`loops/nontemporal.py`).

These are large results of fusions that only move elements. A result is excluded if most of its elements are repeated or
constant: non-temporal stores of lines are no faster for it, and the caches keep a part of it.
"""

from __future__ import annotations

import math

from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ..machine import target_machine

LEAST_ROW = 2048
"""Bytes of a row."""

_TOGETHER = 16
"""A last dimension of up to so many elements is no row: the dimension before it joins it."""

_MOVES = frozenset(
    (
        Opcode.PARAMETER, Opcode.CONSTANT, Opcode.BROADCAST, Opcode.IOTA, Opcode.RESHAPE, Opcode.BITCAST, Opcode.SLICE,
        Opcode.REVERSE, Opcode.PAD, Opcode.CONCATENATE, Opcode.DYNAMIC_SLICE, Opcode.TRANSPOSE, Opcode.COPY,
    )
)  # fmt: skip


def least_bytes() -> int:
    """The fewest bytes of a large result. A good part of a smaller result is still in the caches when the next result
    takes its memory, so plain stores are faster."""
    return target_machine().last_cache


def row_of(body: HloComputation) -> int:
    """How many of the last dimensions are a row, if the one result of the fusion should be written by non-temporal
    stores; else 0."""
    shape = body.root.shape
    if not shape.is_array or not shape.rank or not all(i.opcode in _MOVES for i in body.instructions):
        return 0
    sizes, width = shape.dimensions, shape.element.byte_width
    elements = math.prod(sizes)
    if elements * width < least_bytes() or 2 * sum(p.shape.num_elements for p in body.parameters) < elements:
        return 0
    count = 2 if len(sizes) > 1 and sizes[-1] <= _TOGETHER else 1
    return count if math.prod(sizes[-count:]) * width >= LEAST_ROW else 0

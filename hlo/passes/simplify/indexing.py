"""Rules of the algebraic simplifier for gather and scatter. They hold for all element types.

As in arithmetic.py, a rule takes an instruction and returns its replacement, or None.
"""

from __future__ import annotations

import numpy as np

from ...builder import make_instruction, make_tuple
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.movement import SliceAttributes
from ..patterns import reshape, transpose
from ..rules import rule

Instruction = HloInstruction

_MAX_INDICES = 1 << 20


def gather_of_progression(i: Instruction) -> Instruction | None:
    """A gather along one dimension at constant indices that are evenly spaced and ascending is a slice.

    The indices are first clamped, as gather does. Slices must have one element of that dimension.
    """
    array, indices = i.operands
    attributes = i.attributes
    if indices.opcode is not Opcode.CONSTANT or len(attributes.start_index_map) != 1:
        return None
    (d,) = attributes.start_index_map
    if attributes.collapsed_slice_dims != (d,) or attributes.slice_sizes[d] != 1:
        return None
    places = indices.attributes.literal.array.reshape(-1)
    if attributes.operand_batching_dims or not 0 < places.size <= _MAX_INDICES or not array.shape.num_elements:
        return None
    size = array.shape.dimensions[d]
    places = np.clip(places.astype(object if places.dtype == np.uint64 else np.int64), 0, size - 1).astype(np.int64)
    step = int(places[1] - places[0]) if places.size > 1 else 1
    if step < 1 or np.any(np.diff(places) != step):
        return None
    starts, limits = [0] * array.shape.rank, list(attributes.slice_sizes)
    starts[d], limits[d] = int(places[0]), int(places[-1]) + 1
    steps = [1] * array.shape.rank
    steps[d] = step
    found = make_instruction(
        Opcode.SLICE, (array,), SliceAttributes(tuple(starts), tuple(limits), tuple(steps))
    )
    return _as_gathered(i, found, d)


def _as_gathered(i: Instruction, found: Instruction, d: int) -> Instruction | None:
    """`found`, which has all the elements along `d`, with its dimensions in the order of the gather's result."""
    batch = [e for e in range(i.shape.rank) if e not in i.attributes.offset_dims]
    before = batch[0] if batch else 0
    if batch != list(range(before, before + len(batch))):
        return None
    order = [e for e in range(found.shape.rank) if e != d]
    order.insert(before, d)
    return reshape(transpose(found, order), i.shape.dimensions)


def scatter_of_nothing(i: Instruction) -> Instruction | None:
    """A scatter of no updates gives its arrays."""
    count = len(i.operands) // 2
    if i.operands[-1].shape.num_elements:
        return None
    return i.operands[0] if count == 1 else make_tuple(i.operands[:count])


INDEXING_RULES = (
    rule(gather_of_progression, Opcode.GATHER),
    rule(scatter_of_nothing, Opcode.SCATTER),
)
"""In the order in which they are tried."""

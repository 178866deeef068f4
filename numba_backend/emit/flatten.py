"""Emit element-wise computations on arrays of one layout: one loop over the whole buffer, with its padding.

If every element of the results depends only on elements of the operands at the same index, and all arrays have one
layout, then the loop does not depend on the layout. For padding it computes and writes values that are not used::

    for i in range(lo, hi):
        out[i] = x0[i] * c0 + x1[i]

The buffers must not be mostly padding: [1000,2] in tiles of 8 x 128 has 64 offsets for each element.
"""

from __future__ import annotations

from dataclasses import replace

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.ops.movement import BroadcastAttributes
from ...hlo.shape import Shape

MOST_PADDING = 1.5
"""Offsets in the buffer for each element: above this, loops that know the layout do less work."""


def flattened(computation: HloComputation) -> HloComputation | None:
    """The fused computation on whole buffers, seen as arrays of one dimension; None if it is of another kind or all its
    arrays are dense already."""
    roots = computation.roots
    shape = roots[0].shape
    if not shape.is_array or shape.array_layout.is_dense or shape.bits_per_element % 8:
        return None
    count = shape.physical_form.num_elements
    if not count or count > MOST_PADDING * shape.num_elements:
        return None
    buffers = [i for i in (*computation.parameters, *roots) if not (i.opcode is Opcode.PARAMETER and i.shape.is_scalar)]
    if not all(_lies_like(i.shape, shape) for i in buffers):
        return None
    if not all(_is_in_step(i, shape) for i in computation.instructions):
        return None
    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        new = replace(old, operands=tuple(mapping[o] for o in old.operands))
        if old.shape.is_tuple:
            new = replace(new, shape=Shape.tuple([o.shape for o in new.operands]))
        elif old.shape.rank:
            new = replace(new, shape=Shape.array(old.shape.element, (count,)))
        if old.opcode is Opcode.BROADCAST:
            new = replace(new, attributes=BroadcastAttributes(()))
        mapping[old] = new
    return HloComputation(computation.name, tuple(mapping.values()), mapping[computation.root])


def _lies_like(shape: Shape, other: Shape) -> bool:
    if not shape.is_array or shape.dimensions != other.dimensions:
        return False
    a, b = (replace(s.array_layout, memory_space=0, element_size_in_bits=0) for s in (shape, other))
    return a == b and shape.bits_per_element % 8 == 0


def _is_in_step(instruction: HloInstruction, shape: Shape) -> bool:
    opcode = instruction.opcode
    if opcode in (Opcode.PARAMETER, Opcode.TUPLE):
        return True
    if instruction.shape.rank and instruction.shape.dimensions != shape.dimensions:
        return False
    if opcode is Opcode.BROADCAST:
        return instruction.operands[0].shape.is_scalar
    if opcode is Opcode.CONSTANT:
        return instruction.shape.is_scalar
    return is_elementwise(instruction)

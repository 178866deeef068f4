"""Compute an operand of a kernel of its own where the kernel reads it.

The indices of a scatter are often computed element by element: negative ones are counted from the end. A kernel that
reads each of them once can compute it there, which saves a pass that writes an array and one that reads it::

    v0 = x3[i]
    start0 = int64(select(v0 < c0, int32(v0 + c1), v0))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...hlo.builder import make_parameter, make_tuple
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.support.records import dataclass
from .collapse import FusedBody

MOST_MEMBERS = 16
"""More operations than these are better done by a nest of their own, in vectors."""


def may_be_inlined(body: FusedBody, reader: HloInstruction, operand: int) -> bool:
    """True for a cheap computation of a vector, element by element. Also for several vectors as the columns of a
    matrix, if they are the components of the reader's indices."""
    root = body.computation.root
    work = sum(has_trait(i.opcode, Trait.ELEMENTWISE) for i in body.computation.instructions)
    if body.parameter_places or body.root_places or work > MOST_MEMBERS:
        return False
    last: tuple[HloInstruction, ...] = ()
    if _is_beside(root):
        indices = reader.operands[operand].shape
        if operand != len(reader.operands) // 2 or reader.attributes.index_vector_dim != indices.rank - 1:
            return False
        if indices.dimensions[-1] != root.shape.dimensions[1]:
            return False
        last = (root, *root.operands)
    return root.shape.is_array and all(i in last or _is_cheap(i) for i in body.computation.instructions)


def _is_cheap(i: HloInstruction) -> bool:
    if i.shape.rank > 1 or not i.shape.is_array:
        return False
    if i.opcode is Opcode.BROADCAST:
        return not i.operands[0].shape.rank
    if i.opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
        return True
    return has_trait(i.opcode, Trait.ELEMENTWISE) and not has_trait(i.opcode, Trait.EXPENSIVE)


def _is_beside(root: HloInstruction) -> bool:
    """True for a concatenation of vectors into the columns of a matrix."""
    return (
        root.opcode is Opcode.CONCATENATE
        and root.shape.rank == 2
        and root.attributes.dimension == 1
        and all(o.opcode is Opcode.RESHAPE and o.operands[0].shape.rank == 1 for o in root.operands)
        and all(o.shape.dimensions == (root.shape.dimensions[0], 1) for o in root.operands)
    )


@dataclass(frozen=True, slots=True)
class Inlined:
    """The operands of an instruction that its kernel computes, as one computation."""

    computation: HloComputation
    columns: Mapping[int, tuple[HloInstruction, ...]]
    """By operand: a vector, or one for each component of the index."""


def inlined(bodies: Mapping[int, tuple[FusedBody, int]]) -> Inlined:
    """`bodies`: by operand, its computation and the number of the latter's first parameter in the kernel's."""
    order: list[HloInstruction] = []
    columns: dict[int, tuple[HloInstruction, ...]] = {}
    for operand, (body, first) in bodies.items():
        mapping: dict[HloInstruction, HloInstruction] = {}
        for old in body.computation.instructions:
            if old.opcode is Opcode.PARAMETER:
                number = first + old.attributes.number
                new = make_parameter(number, old.shape, f"x{number}")
            else:
                new = replace(old, operands=tuple(mapping[o] for o in old.operands))
            mapping[old] = new
            order.append(new)
        root = body.computation.root
        if root.shape.rank == 2:
            columns[operand] = tuple(mapping[o.operands[0]] for o in root.operands)
        else:
            columns[operand] = (mapping[root],)
    root = make_tuple([column for several in columns.values() for column in several])
    return Inlined(HloComputation("inlined", (*order, root), root), columns)

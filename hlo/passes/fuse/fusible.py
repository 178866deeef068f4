"""The instructions that fusion can put into a loop nest: which instructions, which of them each user computes for
itself, and at which index one instruction reads another. Facts about single instructions only; fusion.py decides what
is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import is_elementwise
from ...shape import Shape
from ..patterns import splat_value

_MOVES = frozenset((
    Opcode.TRANSPOSE, Opcode.SLICE, Opcode.REVERSE, Opcode.PAD, Opcode.CONCATENATE, Opcode.DYNAMIC_SLICE,
    Opcode.DYNAMIC_UPDATE_SLICE, Opcode.GATHER,
))  # fmt: skip

Dimensions = tuple[int, ...]


def squeezed(instruction: HloInstruction) -> Dimensions:
    """The dimensions without those of size 1, since they need no loop."""
    dimensions = instruction.shape.dimensions
    return dimensions if 1 not in dimensions else tuple([d for d in dimensions if d != 1])


def is_fusible(instruction: HloInstruction) -> bool:
    """True for an instruction that can be part of a loop nest."""
    opcode = instruction.opcode
    return is_elementwise(instruction) or opcode in _MOVES or opcode is Opcode.REDUCE


FUSED_WHEN: Mapping[Opcode, str] = {
    Opcode.BITCAST: "when only dimensions of size 1 come or go",
    Opcode.BITCAST_CONVERT: "between types of one width",
    Opcode.CONSTANT: "scalars",
    Opcode.RESHAPE: "when only dimensions of size 1 come or go",
}
"""For ops that are only sometimes fusible or free: when, in a few words for `docs/ops.md`."""


_MAYBE_FREE = frozenset((
    Opcode.CONSTANT, Opcode.RESHAPE, Opcode.BITCAST, Opcode.COPY, Opcode.IOTA, Opcode.BROADCAST,
))  # fmt: skip


def is_free(instruction: HloInstruction) -> bool:
    """True for instructions that each user recomputes: scalar constants, iota, broadcasts, changes of rank, copies from
    the caller's tiled arrays."""
    opcode = instruction.opcode
    if opcode not in _MAYBE_FREE:
        return False
    if opcode is Opcode.CONSTANT:
        return instruction.shape.num_elements == 1
    if opcode in (Opcode.RESHAPE, Opcode.BITCAST):
        return _changes_rank_only(instruction.operands[0].shape, instruction.shape)
    if opcode is Opcode.COPY:
        return _reads_tiles(instruction.operands[0].shape, instruction.shape)
    return True


def _changes_rank_only(source: Shape, target: Shape) -> bool:
    if not (source.is_array and target.is_array and source.array_layout.is_row_major):
        return False
    same = source.element_type is target.element_type and target.array_layout.is_row_major
    return same and [d for d in source.dimensions if d != 1] == [d for d in target.dimensions if d != 1]


def _reads_tiles(source: Shape, target: Shape) -> bool:
    """True for a copy that a loop nest does by reading the caller's tiled, packed or otherwise placed array."""
    return source.is_array and target.array_layout.is_row_major and not source.array_layout.is_row_major


def resolve(
    instruction: HloInstruction, free: Callable[[HloInstruction], bool] = is_free
) -> tuple[HloInstruction, Dimensions]:
    """(source, positions): the first instruction that is not free, and where its dimensions are in `instruction`.

    Dimensions of size 1 are not counted. `free`: `is_free`, or its known answers.
    """
    positions = tuple(range(len(squeezed(instruction))))
    while instruction.operands and free(instruction):
        operand = instruction.operands[0]
        if instruction.opcode is Opcode.BROADCAST:
            where = squeezed_positions(instruction)
            positions = tuple(
                positions[where[d]]
                for d, size in zip(instruction.attributes.dimensions, operand.shape.dimensions, strict=True)
                if size != 1
            )
        instruction = operand
    return instruction, positions


def squeezed_positions(instruction: HloInstruction) -> dict[int, int]:
    """Dimension number -> number without the dimensions of size 1."""
    kept = [d for d, size in enumerate(instruction.shape.dimensions) if size != 1]
    return {d: i for i, d in enumerate(kept)}


def _has_an_index_for_each_element(gather: HloInstruction) -> bool:
    """True for a gather of slices of one element, by indices of one component."""
    vector, indices = gather.attributes.index_vector_dim, gather.operands[1].shape
    if vector < indices.rank and indices.dimensions[vector] != 1:
        return False
    return all(gather.shape.dimensions[d] == 1 for d in gather.attributes.offset_dims)


def reads_at_its_own_index(user: HloInstruction, operand: int) -> bool:
    """True when element i of the user needs element i of this operand (after broadcasting a scalar)."""
    if user.opcode is Opcode.REDUCE:
        return operand < len(user.operands) // 2
    if user.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return operand == 1
    if user.opcode is Opcode.GATHER:
        return operand == 1 and _has_an_index_for_each_element(user)
    return is_elementwise(user)


def reads_of_its_own(reader: HloInstruction, update: HloInstruction) -> bool:
    """True for a dynamic-slice of the array that a dynamic-update-slice writes over, if element i of the slice is
    overwritten by element i of the update or by none.

    So it is if both start at the same index along each dimension in which they have more than one element: column j
    may be computed from column j - 1, since each element reads and writes its own row only.
    """
    new = update.operands[1].shape.dimensions
    return (
        reader.opcode is Opcode.DYNAMIC_SLICE
        and reader.shape.dimensions == new
        and all(
            size == 1 or size == whole or _same_index(a, b)
            for size, whole, a, b in zip(
                new, update.shape.dimensions, reader.operands[1:], update.operands[2:], strict=True
            )
        )
    )


def _same_index(a: HloInstruction, b: HloInstruction) -> bool:
    value = splat_value(a)
    return a is b or (value is not None and value == splat_value(b))

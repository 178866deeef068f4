"""Assign memory to the values inside of an output fusion.

A kernel may write its result over an operand that was computed in the fusion and that nothing else reads. Such values
share one place: the memory of the last one, if that is a result of the fusion. The others are in the fusion's own
memory. It has a part for each range of pieces that a thread takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...hlo.buffers.assignment import ALIGNMENT
from ...hlo.buffers.coalescing import CanShare
from ...hlo.buffers.heap import Request, place
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from .form import Leaf, Pieces, leaf_of

MEMBERS = frozenset((Opcode.CONVOLUTION, Opcode.DOT, Opcode.FUSION, Opcode.REDUCE_WINDOW))

@dataclass(frozen=True, slots=True)
class Placement:
    """The memory of a value: the memory of a result of the fusion, or a part of the fusion's own memory."""

    output: int | None
    offset: int = 0
    """The offset in a part."""
    row: int = 0
    """The bytes of a row in a part; 0 where there are no pieces."""


@dataclass(frozen=True, slots=True)
class OutputMemory:
    """The memory of the values inside of an output fusion."""

    members: tuple[HloInstruction, ...]
    placements: Mapping[Leaf, Placement]
    part: int
    """The bytes of a part of the fusion's own memory."""
    over: Mapping[int, tuple[int, ...]]
    """By result: the operands over which it may be written, element by element."""


def taken_over(
    member: HloInstruction, is_only_reader: Callable[[HloInstruction], bool], can_share: CanShare
) -> dict[int, int]:
    """Result of a member -> the operand that it is stored over. `is_only_reader`: True for an operand that was computed
    in the fusion, and that nothing else reads."""
    found: dict[int, int] = {}
    for k, shape in enumerate(member.shape.leaves()):
        for n, operand in enumerate(member.operands):
            if n in found.values() or not shape.byte_size or operand.shape.byte_size != shape.byte_size:
                continue
            if is_only_reader(operand) and can_share(member, n, k):
                found[k] = n
                break
    return found


def reads_alone(computation: HloComputation, value: HloInstruction, reader: HloInstruction) -> bool:
    """True if nothing but `reader` looks at an array, however its element is taken out."""
    if value is computation.root or computation.users[value] != (reader,):
        return False
    if value.opcode is not Opcode.GET_TUPLE_ELEMENT:
        return True
    source, index = leaf_of(value)
    others = [user for user in computation.users[source] if user is not value]
    return source is not computation.root and all(
        user.opcode is Opcode.GET_TUPLE_ELEMENT and user.attributes.index != index for user in others
    )


def memory_of(fused: HloComputation, pieces: Pieces | None, can_share: CanShare) -> OutputMemory:
    """The memory of the values in a fused computation."""
    members = tuple([i for i in fused.instructions if i.opcode in MEMBERS])
    outputs = {leaf_of(r): k for k, r in enumerate(fused.roots) if r.opcode is not Opcode.CUSTOM_CALL}
    rows, most = 1, 1  # of the whole, and in a part
    if pieces is not None:
        cut = pieces.cut
        rows = cut.matrices * cut.rows
        most = cut.rows - (cut.per_matrix - 1) * cut.step if pieces.parts else rows
    before: dict[Leaf, Leaf] = {}
    ends: dict[Leaf, int] = {}
    over: dict[int, tuple[int, ...]] = {}
    for number, member in enumerate(members):
        for operand in member.operands:
            ends[leaf_of(operand)] = number
        taken = {}
        if member is not members[0]:

            def is_only_reader(value: HloInstruction, member: HloInstruction = member) -> bool:
                return value.opcode is not Opcode.PARAMETER and reads_alone(fused, value, member)

            taken = taken_over(member, is_only_reader, can_share)
        for k, n in taken.items():
            before[member, k] = leaf_of(member.operands[n])
        for k, _ in enumerate(member.shape.leaves()):
            ends[member, k] = number
            if (member, k) in outputs and k not in taken and member is not members[0]:
                over[outputs[member, k]] = tuple(
                    operand.attributes.number
                    for n, operand in enumerate(member.operands)
                    if operand.opcode is Opcode.PARAMETER
                    and reads_alone(fused, operand, member)
                    and can_share(member, n, k)
                )
    placements: dict[Leaf, Placement] = {}
    own: list[tuple[list[Leaf], Request]] = []
    covered = set(before.values())
    position = {member: number for number, member in enumerate(members)}
    for member in members:
        for k, shape in enumerate(member.shape.leaves()):
            if (member, k) in covered:
                continue
            leaves = [(member, k)]
            while leaves[-1] in before:
                leaves.append(before[leaves[-1]])
            if (member, k) in outputs:
                placements.update(dict.fromkeys(leaves, Placement(outputs[member, k])))
                continue
            size = shape.byte_size // rows * most
            begin, end = position[leaves[-1][0]], ends[member, k] + 1
            if pieces is None or not pieces.parts:
                # threads are at different members: rows of one value lie where another has other rows
                begin, end = 0, len(members)
            own.append((leaves, Request(size, begin, end)))
    offsets, part = place([request for _, request in own], ALIGNMENT)
    for (leaves, request), offset in zip(own, offsets, strict=True):
        row = request.size // most if pieces is not None else 0
        placements.update(dict.fromkeys(leaves, Placement(None, offset, row)))
    return OutputMemory(members, placements, -(-part // ALIGNMENT) * ALIGNMENT, over)

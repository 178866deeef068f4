"""Expansion of collectives: their halves in time for all programs, all of them for programs that one device runs.

Nothing runs between a start and its done here, so that a start is the whole collective. In a program for one device,
which is alone in its group, the device receives its own data: no collective is left. There a collective that needs more
devices is refused: UnsupportedError says how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...builder import make_constant, make_get_tuple_element, make_instruction, make_tuple
from ...errors import UnsupportedError
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.collective import CollectiveAttributes
from ...shape import Shape
from ..patterns import make_splat
from ..rules import rule


def _needs(instruction: HloInstruction, count: int | str, why: str) -> UnsupportedError:
    opcode = instruction.opcode.value
    return UnsupportedError(f"{opcode} {instruction.name} needs {count} replicas, there is one: {why}")


def _require_one_device(instruction: HloInstruction) -> None:
    attributes: CollectiveAttributes = instruction.attributes
    groups = attributes.replica_groups.groups
    own = next((group for group in groups if 0 in group), None)
    if groups and own is None:
        raise _needs(instruction, 1 + max(d for g in groups for d in g), "device 0 is in no group")
    if own is not None and len(own) > 1:
        raise _needs(instruction, 1 + max(own), f"device 0 is in the group {list(own)}")


def _together(values: list[HloInstruction]) -> HloInstruction:
    return values[0] if len(values) == 1 else make_tuple(values)


def _zeros(operands: Sequence[HloInstruction]) -> HloInstruction:
    return _together([make_splat(0, o.shape) for o in operands])


def collective_of_one(instruction: HloInstruction) -> HloInstruction:
    """all-reduce, all-gather, reduce-scatter: the operands."""
    _require_one_device(instruction)
    found = _together(list(instruction.operands))
    if not found.shape.compatible(instruction.shape):
        raise _needs(instruction, "several", f"{found.shape} becomes {instruction.shape}")
    return found


def all_to_all(instruction: HloInstruction) -> HloInstruction:
    """The array form gives the operand, the tuple form the tuple of its one operand."""
    _require_one_device(instruction)
    if instruction.attributes.dimension is not None:
        return instruction.operands[0]
    if len(instruction.operands) > 1:
        raise _needs(instruction, len(instruction.operands), "it has as many operands")
    return make_tuple(instruction.operands)


def collective_broadcast(instruction: HloInstruction) -> HloInstruction | None:
    """The operand; zeros for a device in no group. Not where the roots are an operand: when the program runs, a root
    that is not member 0, the only one, is an error."""
    groups = instruction.attributes.replica_groups.groups
    has_roots = instruction.attributes.has_dynamic_root
    if groups and not any(0 in group for group in groups):
        return _zeros(instruction.operands[: -1 if has_roots else None])
    _require_one_device(instruction)
    return None if has_roots else _together(list(instruction.operands))


def collective_permute(instruction: HloInstruction) -> HloInstruction:
    """The operand if device 0 sends to itself, zeros if no device sends to it."""
    if instruction.attributes.slice_sizes or any(o.shape.is_tuple for o in instruction.operands):
        what = f"{instruction.opcode.value} {instruction.name}"
        raise UnsupportedError(f"{what}: permuting slices in place is not supported")
    pairs = instruction.attributes.source_target_pairs
    largest = max((device for pair in pairs for device in pair), default=0)
    if largest:
        raise _needs(instruction, 1 + largest, f"its pairs are {list(pairs)}")
    return _together(list(instruction.operands)) if pairs else _zeros(instruction.operands)


def all_reduce_start(start: HloInstruction) -> HloInstruction:
    """The all-reduce."""
    return _whole(start, Opcode.ALL_REDUCE, start.shape)


def all_gather_start(start: HloInstruction) -> HloInstruction:
    """(operands, all-gather)."""
    return make_tuple([_together(list(start.operands)), _whole(start, Opcode.ALL_GATHER, start.shape.elements[1])])


def collective_permute_start(start: HloInstruction) -> HloInstruction:
    """(operand, collective-permute, contexts...)."""
    given, result, *contexts = start.shape.elements
    operands = start.operands if given.is_tuple else start.operands[:1]
    found = _whole(start, Opcode.COLLECTIVE_PERMUTE, result)
    zeros = [make_constant(np.uint32(0)) for _ in contexts]
    return make_tuple([make_tuple(operands) if given.is_tuple else operands[0], found, *zeros])


def _whole(start: HloInstruction, opcode: Opcode, shape: Shape) -> HloInstruction:
    made = make_instruction(opcode, start.operands, start.attributes, shape)
    return replace(made, name=start.name, metadata=start.metadata)


def collective_done(done: HloInstruction) -> HloInstruction:
    """all-gather-done and collective-permute-done: element 1 of the start's result."""
    return make_get_tuple_element(done.operands[0], 1)


def all_reduce_done(done: HloInstruction) -> HloInstruction:
    """all-reduce-done: the start's result."""
    return done.operands[0]


def device_number(instruction: HloInstruction) -> HloInstruction:
    """replica-id and partition-id: 0."""
    return make_constant(np.uint32(0))


COLLECTIVE = (
    rule(all_gather_start, Opcode.ALL_GATHER_START),
    rule(all_reduce_start, Opcode.ALL_REDUCE_START),
    rule(collective_permute_start, Opcode.COLLECTIVE_PERMUTE_START),
    rule(collective_done, Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
    rule(all_reduce_done, Opcode.ALL_REDUCE_DONE),
    rule(collective_of_one, Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, one_device=True),
    rule(all_to_all, Opcode.ALL_TO_ALL, one_device=True),
    rule(collective_broadcast, Opcode.COLLECTIVE_BROADCAST, one_device=True),
    rule(collective_permute, Opcode.COLLECTIVE_PERMUTE, one_device=True),
    rule(device_number, Opcode.PARTITION_ID, Opcode.REPLICA_ID, one_device=True),
)
"""ragged-all-to-all has a row of its own in the table, for one device too: it writes rows of an array."""

"""Expansion of collectives for a single device: replica 0 of partition 0.

A device that is alone in its group gets back what it sent. A program that needs more devices is refused:
UnsupportedError says how many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...builder import make_constant, make_get_tuple_element, make_tuple
from ...errors import UnsupportedError
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.collective import CollectiveAttributes
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
    """all-reduce, all-gather, reduce-scatter and their starts: the operands."""
    _require_one_device(instruction)
    found = _together(list(instruction.operands))
    gathered = instruction.opcode is Opcode.ALL_GATHER_START
    if not found.shape.compatible(instruction.shape.elements[1] if gathered else instruction.shape):
        raise _needs(instruction, "several", f"{found.shape} becomes {instruction.shape}")
    return make_tuple([found, found]) if gathered else found


def all_to_all(instruction: HloInstruction) -> HloInstruction:
    """The array form gives the operand, the tuple form the tuple of its one operand."""
    _require_one_device(instruction)
    if instruction.attributes.dimension is not None:
        return instruction.operands[0]
    if len(instruction.operands) > 1:
        raise _needs(instruction, len(instruction.operands), "it has as many operands")
    return make_tuple(instruction.operands)


def collective_broadcast(instruction: HloInstruction) -> HloInstruction:
    """The operand; zeros for a device in no group. A root can only be member 0 of the group of one."""
    groups = instruction.attributes.replica_groups.groups
    operands = instruction.operands[: -1 if instruction.attributes.has_dynamic_root else None]
    if groups and not any(0 in group for group in groups):
        return _zeros(operands)
    _require_one_device(instruction)
    return _together(list(operands))


def collective_permute(instruction: HloInstruction) -> HloInstruction:
    """The operand if device 0 sends to itself, zeros if no device sends to it."""
    if instruction.attributes.slice_sizes or any(o.shape.is_tuple for o in instruction.operands):
        what = f"{instruction.opcode.value} {instruction.name}"
        raise UnsupportedError(f"{what}: permuting slices in place is not supported")
    pairs = instruction.attributes.source_target_pairs
    largest = max((device for pair in pairs for device in pair), default=0)
    if largest:
        raise _needs(instruction, 1 + largest, f"its pairs are {list(pairs)}")
    result = _together(list(instruction.operands)) if pairs else _zeros(instruction.operands)
    if instruction.opcode is Opcode.COLLECTIVE_PERMUTE:
        return result
    contexts = [make_constant(np.uint32(0)) for _ in instruction.shape.elements[2:]]
    return make_tuple([_together(list(instruction.operands)), result, *contexts])


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
    rule(
        collective_of_one,
        *(Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START),
        Opcode.REDUCE_SCATTER,
    ),
    rule(collective_done, Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
    rule(all_reduce_done, Opcode.ALL_REDUCE_DONE),
    rule(all_to_all, Opcode.ALL_TO_ALL),
    rule(collective_broadcast, Opcode.COLLECTIVE_BROADCAST),
    rule(collective_permute, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START),
    rule(device_number, Opcode.PARTITION_ID, Opcode.REPLICA_ID),
)
"""ragged-all-to-all has its own rule in the table."""

"""all-reduces that do not wait for each other become one: a message for all gradients instead of one for each.

Two may be joined if neither needs the other's result. To be sure of that for whole sets, each instruction has a level:
how many all-reduces come before it on the longest way. All-reduces of one level with the same groups and the same
operation are joined, up to a size. Source: XLA's AllReduceCombiner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...builder import make_computation, make_get_tuple_element, make_instruction
from ...effects import effects_of
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...provenance import note_made, note_replacements
from ..rewrite import map_computations

MOST_BYTES = 32 << 20
"""A joined all-reduce is no larger: more would only keep devices waiting for the first operand to be sent."""


def with_combined_all_reduces(module: HloModule, own: int) -> HloModule:
    """The module with joined all-reduces. `own`: channels up to this one are the program's, and stay as they are."""
    return map_computations(module, lambda c: _combined(c, own))


def _combined(computation: HloComputation, own: int) -> HloComputation:
    if sum(_is_ours(i, own) for i in computation.instructions) < 2:
        return computation
    levels: dict[HloInstruction, int] = {}
    by_level: dict[int, list[HloInstruction]] = {}
    for i in computation.instructions:
        before = max([levels[o] for o in i.operands], default=0)
        levels[i] = before + _is_ours(i, own)
        by_level.setdefault(before, []).append(i)
    mapping: dict[HloInstruction, HloInstruction] = {}
    for level in sorted(by_level):
        waiting = []
        for i in by_level[level]:
            if _is_ours(i, own):
                waiting.append(i)
            else:
                mapping[i] = i.with_operands(tuple([mapping[o] for o in i.operands]))
        for batch in _batches(waiting):
            _join(batch, mapping)
    root = mapping[computation.root]
    if all(new is old for old, new in mapping.items()):
        return computation
    note_replacements(mapping, trees=True)
    parameters = [mapping[p] for p in computation.parameters]
    return make_computation(computation.name, root, parameters, [mapping[e] for e in effects_of(computation)])


def _is_ours(i: HloInstruction, own: int) -> bool:
    return i.opcode is Opcode.ALL_REDUCE and (i.attributes.channel_id or 0) > own


def _batches(waiting: Sequence[HloInstruction]) -> list[list[HloInstruction]]:
    """Those that can be one, in order."""
    found: list[list[HloInstruction]] = []
    current: dict[object, list[HloInstruction]] = {}
    for i in waiting:
        key = (i.attributes.replica_groups.groups, i.attributes.to_apply)
        batch = current.get(key)
        if batch is None or sum(b.shape.byte_size for b in batch) + i.shape.byte_size > MOST_BYTES:
            batch = current[key] = []
            found.append(batch)
        batch.append(i)
    return found


def _join(batch: Sequence[HloInstruction], mapping: dict[HloInstruction, HloInstruction]) -> None:
    first = batch[0]
    operands = tuple([mapping[o] for i in batch for o in i.operands])
    if len(batch) == 1:
        mapping[first] = first.with_operands(operands)
        return
    joined = make_instruction(Opcode.ALL_REDUCE, operands, first.attributes, name=first.name, metadata=first.metadata)
    note_made(joined, batch)
    for k, i in enumerate(batch):
        mapping[i] = replace(make_get_tuple_element(joined, k), metadata=i.metadata)

"""Do two modules say the same? What text keeps: everything but the names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hloom.hlo.ir import HloComputation, HloInstruction, HloModule

_HEADER = (
    "input_output_aliases", "is_scheduled", "frontend_attributes", "replica_count", "num_partitions", "buffer_donors",
    "annotations",
)  # fmt: skip


def first_difference(a: HloModule, b: HloModule) -> str:
    """Where two modules differ, or ""."""
    for name in _HEADER:
        if getattr(a, name) != getattr(b, name):
            return f"{name}: {getattr(a, name)} and {getattr(b, name)}"
    if a.entry_parameter_shapes != b.entry_parameter_shapes or a.entry_result_shape != b.entry_result_shape:
        return "the entry's layouts"
    if len(a.computations) != len(b.computations):
        return f"{len(a.computations)} and {len(b.computations)} computations"
    same = dict(zip(a.computations, b.computations, strict=True))
    for mine, other in same.items():
        found = _in_computation(mine, other, same)
        if found:
            return found
    return ""


def _in_computation(a: HloComputation, b: HloComputation, same: dict[HloComputation, HloComputation]) -> str:
    if len(a.instructions) != len(b.instructions):
        return f"{len(a.instructions)} and {len(b.instructions)} instructions in {a.name}"
    place = {i: k for k, i in enumerate(a.instructions)}
    other_place = {i: k for k, i in enumerate(b.instructions)}
    if place[a.root] != other_place[b.root]:
        return f"the root of {a.name}"
    for x, y in zip(a.instructions, b.instructions, strict=True):
        if x.opcode is not y.opcode or [place[o] for o in x.operands] != [other_place[o] for o in y.operands]:
            return f"opcode or operands: {x} and {y}"
        if x.shape != y.shape:
            return f"shape: {x} and {y}"
        found = _in_attributes(x, y, same)
        if found:
            return found
        if x.frontend_attributes != y.frontend_attributes or x.annotations != y.annotations:
            return f"annotations: {x} and {y}"
    return ""


def _in_attributes(x: HloInstruction, y: HloInstruction, same: dict[HloComputation, HloComputation]) -> str:
    mine: Any = x.attributes.map_computations(lambda c: same[c])
    if type(mine) is not type(y.attributes):
        return f"attributes: {x} and {y}"
    for field in fields(mine):
        if getattr(mine, field.name) != getattr(y.attributes, field.name):
            return f"{field.name}: {getattr(mine, field.name)} and {getattr(y.attributes, field.name)} of {x}"
    return ""

"""Which broadcasts are no equations.

HLO's element-wise ops take operands of one shape, JAX's primitives also scalars, and sizes of 1 beside others. So where
HLO has ``broadcast`` before ``multiply``, a jaxpr has ``mul a 2.0:f32[]``. This file determines, for a computation, the
inputs of each element-wise op in the jaxpr, and the instructions that these need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from ..hlo.effects import effects_of
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.records import dataclass

_O = Opcode
SPREADING = frozenset({
    _O.ADD, _O.AND, _O.ATAN2, _O.COMPARE, _O.DIVIDE, _O.MAXIMUM, _O.MINIMUM, _O.MULTIPLY, _O.OR, _O.POWER,
    _O.REMAINDER, _O.SHIFT_LEFT, _O.SHIFT_RIGHT_ARITHMETIC, _O.SHIFT_RIGHT_LOGICAL, _O.SUBTRACT, _O.XOR,
})  # fmt: skip
"""Ops with primitives that broadcast their operands."""


class Source(NamedTuple):
    """An input of an equation: the value of an instruction. `only_ranks`: of a broadcast only the new dimensions, with
    size 1, as JAX inserts them; the primitive does the rest."""

    instruction: HloInstruction
    only_ranks: bool = False


@dataclass(slots=True)
class Plan:
    """The inputs of a computation's equations, and the values that they need."""

    sources: dict[HloInstruction, tuple[Source, ...]] = field(default_factory=dict)
    """For instructions that take something else than their operands."""
    needed: set[Source] = field(default_factory=set)


def plan_of(computation: HloComputation) -> Plan:
    """The plan; the last instructions first, since an operand is needed only if an equation takes it."""
    plan = Plan()
    plan.needed.update(Source(i) for i in (computation.root, *effects_of(computation)))
    for i in reversed(computation.instructions):
        if Source(i, True) in plan.needed:
            plan.needed.add(Source(i.operands[0]))
        if Source(i) not in plan.needed:
            continue
        sources = tuple([Source(o) for o in i.operands])
        if i.opcode in SPREADING:
            folded = _folded(i)
            if folded != sources:
                plan.sources[i] = sources = folded
        elif i.opcode is Opcode.CLAMP:
            plan.sources[i] = sources = (_scalar(sources[0]), sources[1], _scalar(sources[2]))
        plan.needed.update(sources)
    return plan


def ranked(i: HloInstruction) -> tuple[int, ...]:
    """The result of a broadcast with size 1 in the dimensions that the operand lacks."""
    (operand,), dimensions = i.operands, i.attributes.dimensions
    sizes = dict(zip(dimensions, operand.shape.dimensions, strict=True))
    return tuple([sizes.get(d, 1) for d in range(i.shape.rank)])


def _scalar(source: Source) -> Source:
    i = source.instruction
    is_spread = i.opcode is Opcode.BROADCAST and not i.operands[0].shape.rank
    return Source(i.operands[0]) if is_spread else source


def _folded(i: HloInstruction) -> tuple[Source, ...]:
    """The inputs of `i`; together, the operands still have the result's shape."""
    sources = [_source(o) for o in i.operands]
    for k, operand in enumerate(i.operands):
        if _spread([_sizes(s) for s in sources]) == i.shape.dimensions:
            break
        sources[k] = Source(operand)
    return tuple(sources)


def _source(operand: HloInstruction) -> Source:
    if operand.opcode is not Opcode.BROADCAST:
        return Source(operand)
    (value,) = operand.operands
    if not value.shape.rank:
        return Source(value)
    sizes = ranked(operand)
    if value.opcode is Opcode.RESHAPE and value.operands[0].shape.dimensions == sizes:
        return Source(value.operands[0])
    return Source(operand, sizes != operand.shape.dimensions)


def _sizes(source: Source) -> tuple[int, ...]:
    return ranked(source.instruction) if source.only_ranks else source.instruction.shape.dimensions


def _spread(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Scalars, and sizes of 1, give way."""
    full = [s for s in shapes if s]
    return tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*full, strict=True)])

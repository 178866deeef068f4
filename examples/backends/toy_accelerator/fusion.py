"""A pass: elementwise ops that follow one another become one fusion that keeps its values in the scratchpad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hloom.hlo import (
    HloComputation,
    HloInstruction,
    HloModule,
    Opcode,
    make_computation,
    make_instruction,
    make_parameter,
)
from hloom.hlo.ops import Trait, has_trait
from hloom.hlo.ops.structure import FusionAttributes, FusionKind
from hloom.hlo.passes.rewrite import map_each_computation, rewrite_computation

MOST = 24
"""Ops of one fusion: each value that is still needed has a part of the scratchpad."""


def is_fusible(instruction: HloInstruction) -> bool:
    """Whether the vector unit computes the instruction, or it repeats a scalar for the vector unit."""
    if instruction.opcode is Opcode.BROADCAST:
        return not instruction.operands[0].shape.rank
    return has_trait(instruction.opcode, Trait.ELEMENTWISE) and instruction.opcode is not Opcode.MAP


@dataclass(frozen=True, slots=True)
class FuseElementwise:
    """Fuses an op with its operands that have no other user."""

    name: str = "fuse-elementwise"

    def __call__(self, module: HloModule) -> HloModule:
        applied = {c for i in module.instructions() if has_trait(i.opcode, Trait.APPLIES) for c in _called(i)}
        return map_each_computation(module, lambda old, new: new if old in applied else _fused(new))


def _called(instruction: HloInstruction) -> Iterator[HloComputation]:
    """Reducers and comparators, and the computations they call: they are no programs on arrays."""
    for computation in instruction.called_computations():
        yield computation
        for inner in computation.instructions:
            yield from _called(inner)


def _fused(computation: HloComputation) -> HloComputation:
    bodies: dict[HloInstruction, HloInstruction] = {}
    """For what may be taken in: its value as an expression."""
    inside: dict[HloInstruction, int] = {}
    """The parts of expressions, with the number of ops up to there. All else is an operand of the fusion."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if not is_fusible(moved):
            return moved
        operands, count = [], 1
        for before, operand in zip(old.operands, moved.operands, strict=True):
            body = bodies.get(operand)
            size = 0 if body is None else inside[body]
            alone = computation.users[before] == (old,) and operand.shape.dimensions == moved.shape.dimensions
            if body is None or not alone or count + size > MOST:
                operands.append(operand)
            else:
                operands.append(body)
                count += size
        expression = moved if operands == list(moved.operands) else moved.with_operands(tuple(operands))
        inside[expression] = count
        result = moved if count == 1 else replace(_fusion(expression, inside), metadata=old.metadata)
        bodies[result] = expression
        return result

    return rewrite_computation(computation, visit)


def _fusion(expression: HloInstruction, inside: dict[HloInstruction, int]) -> HloInstruction:
    outside: dict[HloInstruction, HloInstruction] = {}
    made: dict[HloInstruction, HloInstruction] = {}
    for instruction in _in_order(expression, inside):
        if instruction in inside:
            made[instruction] = instruction.with_operands(tuple([made[o] for o in instruction.operands]))
        else:
            made[instruction] = outside[instruction] = make_parameter(len(outside), instruction.shape)
    body = make_computation("fused", made[expression], list(outside.values()))
    attributes = FusionAttributes(FusionKind.LOOP, body)
    return make_instruction(Opcode.FUSION, list(outside), attributes, expression.shape)


def _in_order(root: HloInstruction, inside: dict[HloInstruction, int]) -> Sequence[HloInstruction]:
    order: dict[HloInstruction, None] = {}

    def add(instruction: HloInstruction) -> None:  # no deeper than MOST
        if instruction in inside:
            for operand in instruction.operands:
                add(operand)
        order.setdefault(instruction)

    add(root)
    return list(order)

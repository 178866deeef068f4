"""Programs as an export has them: without values from outside, and with a result for each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..hlo.builder import make_computation, make_constant, make_instruction, make_tuple, with_unique_names
from ..hlo.element_type import ElementType
from ..hlo.ir import HloInstruction, HloModule
from ..hlo.literal import Literal
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import BroadcastAttributes
from ..hlo.passes.rewrite import rewrite_computation
from ..hlo.shape import Shape
from ..tracer.arrays.overlay import storage_of
from ..tracer.aval import FLOAT0
from ..tracer.stages import Lowered


def closed_module(lowered: Lowered, out_avals: Sequence[Any]) -> HloModule:
    """The program with its captured arrays as constants. A type of float0 among `out_avals` is an array of booleans,
    as in JAX's programs. NotImplementedError for a program that calls Python."""
    module = lowered.module
    for instruction in module.instructions():
        if instruction.opcode is Opcode.CUSTOM_CALL and instruction.attributes.function is not None:
            raise NotImplementedError(
                "serialization of host_callbacks is not yet implemented: the program calls Python, at "
                f"{instruction.attributes.custom_call_target}, and a file cannot hold that function"
            )
    count = len(module.entry.parameters) - len(lowered.captured)
    held = [storage_of(value) for value in lowered.captured]

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode is not Opcode.PARAMETER or old.attributes.number < count:
            return moved
        return make_constant(Literal(np.asarray(held[old.attributes.number - count])))

    entry = rewrite_computation(module.entry, visit)
    if any(a.dtype == FLOAT0 for a in out_avals):
        given = iter(entry.root.operands)
        results = [_nothing(a.shape) if a.dtype == FLOAT0 else next(given) for a in out_avals]
        effects = [i for i in entry.instructions if i is not entry.root]
        entry = make_computation(entry.name, make_tuple(results), entry.parameters, effects)
    if entry is not module.entry:
        module = with_unique_names(replace(module, entry=entry))
    return module


def _nothing(shape: tuple[Any, ...]) -> HloInstruction:
    """The result that stands for a float0 array."""
    scalar = make_constant(Literal(np.False_))
    return make_instruction(
        Opcode.BROADCAST, [scalar], BroadcastAttributes(()), Shape.array(ElementType.PRED, shape)
    )

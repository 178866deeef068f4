"""The fused computations of a module, and which results of its instructions may be written over which operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..hlo.buffers.values import is_alias
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.fuse.outline_loops import is_outlined_loop
from ..hlo.support.memory_pressure import on_pressure
from ..hlo.timeline.spans import Track, spanning
from .emit import FusedBody, Sharing, canonical, structure_of
from .emitted_kernel import EmittedKernel
from .lowering_rules import share_rule
from .machine import Machine, target_machine
from .native_loops.state import overwritten
from .output_fusion import OutputMemory, in_place, is_output_fusion, memory_of, pieces_of, scatter_of
from .policy.fusions import emit_fusion


class _Known:
    """The facts about fused computations of one structure."""

    def __init__(self, body: FusedBody) -> None:
        self.body = body
        self.sharing = Sharing(body)
        self.kernels: dict[tuple[Machine, tuple[tuple[int, int], ...]], EmittedKernel] = {}
        self.rows: dict[tuple[frozenset[int], tuple[int, ...]], bool] = {}
        """The answers of `keeps_rows`."""


_MOST_INSTRUCTIONS = 4096
_known: dict[tuple[object, ...], _Known] = {}
"""The facts by structure, for all modules: many fusions of a program are the same with another constant or another
batch. As many as have `_MOST_INSTRUCTIONS` together, a few megabytes."""

on_pressure(_known.clear)


def _known_of(computation: HloComputation) -> _Known:
    structure = structure_of(computation)
    found = _known.get(structure)
    if found is None:
        found = _Known(canonical(computation))
        if sum(map(len, tuple(_known))) + len(structure) > _MOST_INSTRUCTIONS:
            _known.clear()
        _known[structure] = found
    return found


class FusedComputations:
    """The canonical fused computations of one module and their kernels. Computations of equal structure share one."""

    def __init__(self) -> None:
        self._canonical: dict[HloComputation, _Known] = {}
        self._loops: dict[HloInstruction, dict[int, int] | None] = {}
        self._memories: dict[HloComputation, OutputMemory] = {}
        self._alone: dict[HloInstruction, list[bool]] = {}
        """For each operand: do no other operands have the same bytes?"""

    def of(self, fusion: HloInstruction) -> FusedBody:
        return self._known(fusion).body

    def _known(self, fusion: HloInstruction) -> _Known:
        computation = fusion.attributes.calls
        found = self._canonical.get(computation)
        if found is None:
            found = self._canonical[computation] = _known_of(computation)
        return found

    def kernel(self, fusion: HloInstruction, sharing: Mapping[int, int]) -> EmittedKernel:
        """The kernel of a fusion; `sharing`: see `emit_fusion`."""
        known = self._known(fusion)
        key = target_machine(), tuple(sharing.items())
        found = known.kernels.get(key)
        if found is None:
            with spanning(Track.COMPILING, f"emit {fusion.name}"):
                found = known.kernels[key] = emit_fusion(known.body, sharing)
        return found

    def row_answers(self, fusion: HloInstruction) -> dict[tuple[frozenset[int], tuple[int, ...]], bool]:
        """The known answers of `keeps_rows` (output_fusion/find.py) for fusions of this structure."""
        return self._known(fusion).rows

    def memory(self, fusion: HloInstruction) -> OutputMemory:
        """The memory of the values inside of an output fusion."""
        computation = fusion.attributes.calls
        found = self._memories.get(computation)
        if found is None:
            found = self._memories[computation] = memory_of(computation, pieces_of(fusion), self.can_share)
        return found

    def _taken_over(self, instruction: HloInstruction) -> dict[int, int] | None:
        """For an outlined loop: result -> the operand that it is stored over. None for others."""
        if instruction not in self._loops:
            is_loop = is_outlined_loop(instruction)
            self._loops[instruction] = overwritten(instruction.attributes.calls) if is_loop else None
        return self._loops[instruction]

    def can_share(self, instruction: HloInstruction, operand: int, output: int) -> bool:
        """The rule that buffer assignment asks for; see `CanShare`."""
        taken_over = self._taken_over(instruction)
        if taken_over is not None:
            allowed = taken_over.get(output) == operand
        elif (scatter := scatter_of(instruction)) is not None:
            allowed = in_place(instruction, scatter, operand, output)
        elif is_output_fusion(instruction):
            allowed = operand in self.memory(instruction).over.get(output, ())
        elif instruction.opcode is Opcode.FUSION:
            allowed = self._known(instruction).sharing.may_overwrite(operand, output)
        else:
            share = share_rule(instruction.opcode)
            allowed = share is not None and share(instruction, operand, output)
        if not allowed:
            return False
        # Do two pointers lead to one buffer, which the code would write through one and read through the other?
        alone = self._alone.get(instruction)
        if alone is None:
            origins = [origin_of(o) for o in instruction.operands]
            count = Counter(origins)
            alone = self._alone[instruction] = [count[origin] == 1 for origin in origins]
        return alone[operand]


def origin_of(instruction: HloInstruction) -> tuple[HloInstruction, int]:
    """The instruction (and, for a tuple, the element) that holds the bytes of an array-shaped value."""
    element = 0
    while is_alias(instruction):
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            index = instruction.attributes.index
            source = instruction.operands[0]
            if source.opcode is Opcode.TUPLE:
                instruction = source.operands[index]
                continue
            return source, index
        if instruction.opcode is Opcode.TUPLE:
            break
        instruction = instruction.operands[0]
    return instruction, element

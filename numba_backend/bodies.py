"""The fused computations of a module, and which results of its instructions may be written over which operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..hlo.buffers.values import is_alias
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.fuse.outline_loops import is_outlined_loop
from ..hlo.timeline.spans import Track, spanning
from .emit import FusedBody, Sharing, canonical, emit_fusion, structure_of
from .emit.kernel import EmittedKernel
from .native_loops.state import overwritten
from .rows import share_rule


class Bodies:
    """The canonical fused computations of one module and their kernels. Computations of equal structure share one."""

    def __init__(self) -> None:
        self._canonical: dict[HloComputation, FusedBody] = {}
        self._by_structure: dict[tuple[object, ...], FusedBody] = {}
        self._sharing: dict[FusedBody, Sharing] = {}
        self._kernels: dict[tuple[FusedBody, tuple[tuple[int, int], ...]], EmittedKernel] = {}
        self._loops: dict[HloInstruction, dict[int, int] | None] = {}
        self._alone: dict[HloInstruction, list[bool]] = {}
        """For each operand: do no other operands have the same bytes?"""

    def of(self, fusion: HloInstruction) -> FusedBody:
        computation = fusion.attributes.calls
        found = self._canonical.get(computation)
        if found is None:
            structure = structure_of(computation)
            found = self._by_structure.get(structure)
            if found is None:
                found = self._by_structure[structure] = canonical(computation)
            self._canonical[computation] = found
        return found

    def kernel(self, fusion: HloInstruction, sharing: Mapping[int, int]) -> EmittedKernel:
        """The kernel of a fusion; `sharing`: see `emit_fusion`."""
        body = self.of(fusion)
        key = body, tuple(sharing.items())
        found = self._kernels.get(key)
        if found is None:
            with spanning(Track.COMPILING, f"emit {fusion.name}"):
                found = self._kernels[key] = emit_fusion(body, sharing)
        return found

    def _taken_over(self, instruction: HloInstruction) -> dict[int, int] | None:
        """For an outlined loop: by result, the operand whose memory it takes over. None for others."""
        if instruction not in self._loops:
            is_loop = is_outlined_loop(instruction)
            self._loops[instruction] = overwritten(instruction.attributes.calls) if is_loop else None
        return self._loops[instruction]

    def can_share(self, instruction: HloInstruction, operand: int, output: int) -> bool:
        """The rule that buffer assignment asks for; see `CanShare`."""
        taken_over = self._taken_over(instruction)
        if taken_over is not None:
            allowed = taken_over.get(output) == operand
        elif instruction.opcode is Opcode.FUSION:
            body = self.of(instruction)
            sharing = self._sharing.get(body)
            if sharing is None:
                sharing = self._sharing[body] = Sharing(body)
            allowed = sharing.may_overwrite(operand, output)
        else:
            share = share_rule(instruction.opcode)
            allowed = share is not None and share(instruction, operand, output)
        if not allowed:
            return False
        # Do two pointers lead to one buffer, which the code would write through one and read through the other?
        alone = self._alone.get(instruction)
        if alone is None:
            origins = [_origin(o) for o in instruction.operands]
            count = Counter(origins)
            alone = self._alone[instruction] = [count[origin] == 1 for origin in origins]
        return alone[operand]


def _origin(instruction: HloInstruction) -> tuple[HloInstruction, int]:
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

"""The fused computations of a module, and which results of its instructions may be written over which operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ..hlo.analyses.forms import Form, OpaqueConstant, with_sizes
from ..hlo.analyses.size_classes import classes_of
from ..hlo.buffers.values import is_alias
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.fuse.outline_loops import is_outlined_loop
from ..hlo.support.kept import Kept
from ..hlo.support.lazy import lazy_property
from ..hlo.support.observed import Observations, Recalled, Trial
from ..hlo.timeline.spans import Track, spanning
from .emit import FusedBody, Sharing, canonical
from .emitted_kernel import EmittedKernel
from .lowering_rules import share_rule
from .machine import Machine, target_machine
from .native_loops.state import overwritten
from .output_fusion import OutputMemory, in_place, is_output_fusion, memory_of, pieces_of, scatter_of
from .policy.fusions import emit_fusion

_Rows = dict[tuple[frozenset[int], tuple[int, ...]], bool]


class _Family:
    """The fused computations of one form: what is known of some serves others, for whose sizes it holds."""

    def __init__(self, computation: HloComputation, *, is_dense: bool) -> None:
        self.classes = classes_of([computation])
        self.can_observe = is_dense
        """False if sizes cannot be observed: layouts depend on them, or an emitter uses them in another way."""
        self.answers: dict[Hashable, Recalled[Any]] = {}
        """By question."""


class _Known:
    """The facts about fused computations of one form, with their sizes and constants."""

    def __init__(self, computation: HloComputation, family: _Family, form: Form) -> None:
        self._computation, self._family = computation, family
        self._sizes, self._constants = family.classes.sizes(form.sizes), form.constants
        self.kernels: dict[tuple[Machine, tuple[tuple[int, int], ...]], EmittedKernel] = {}
        self.rows: _Rows = {}
        """The answers of `keeps_rows`."""
        self._trials: dict[Observations, Trial] = {}

    @lazy_property
    def body(self) -> FusedBody:
        """The canonical computation."""
        return canonical(self._computation)

    @lazy_property
    def _sharing(self) -> Sharing:
        return Sharing(self.body)

    @lazy_property
    def _observed(self) -> tuple[FusedBody, Sharing, Observations]:
        """The same with sizes that are observed."""
        seen = Observations(self._sizes)
        sizes = self._family.classes.places(seen.sizes())
        constants = {literal: OpaqueConstant(k) for k, literal in enumerate(self._constants)}
        body = canonical(with_sizes(self._computation, sizes, constants))
        return body, Sharing(body), seen

    def is_identity(self) -> bool:
        """See `FusedBody`."""
        identity: bool = self._answer("identity", lambda body, _: body.is_identity)[1]
        return identity

    def may_overwrite(self, operand: int, output: int) -> bool:
        """See `Sharing`."""
        allowed: bool = self._answer((operand, output), lambda _, sharing: sharing.may_overwrite(operand, output))[1]
        return allowed

    def kernel(self, sharing: Mapping[int, int]) -> EmittedKernel:
        """The kernel for this machine."""
        key = target_machine(), tuple(sharing.items())
        found = self.kernels.get(key)
        if found is None:
            seen, made = self._answer(key, lambda body, _: emit_fusion(body, sharing))
            if seen is not None:
                under = made.under and (lambda steps: _under(emit_fusion(self.body, sharing), steps))
                made = made.of_sizes(self._trial(seen), self._constants, under)
            found = self.kernels[key] = made
        return found

    def _answer(self, question: Hashable, find: Callable[[FusedBody, Sharing], Any]) -> tuple[Observations | None, Any]:
        """The answer to a question about the computation, perhaps one for other sizes that holds for these, too; and
        the observations of the sizes in it."""
        family = self._family

        def observe() -> tuple[Observations, Any]:
            body, sharing, seen = self._observed
            return seen, find(body, sharing)

        if family.can_observe:
            answers = family.answers.get(question)
            if answers is None:
                answers = family.answers[question] = Recalled()
            found = answers.find(self._trial, observe)
            if found is not None:
                return found
            family.can_observe = False
        return None, find(self.body, self._sharing)

    def _trial(self, seen: Observations) -> Trial:
        """These sizes in the place of those that were observed."""
        found = self._trials.get(seen)
        if found is None:
            found = self._trials[seen] = Trial(seen, self._sizes)
        return found


def _under(kernel: EmittedKernel, steps: tuple[Any, ...]) -> EmittedKernel:
    assert kernel.under is not None
    return kernel.under(steps)


_MOST_INSTRUCTIONS = 4096
"""Instructions of all computations of which something is known, together: a few megabytes."""
_families: Kept[tuple[object, ...], _Family] = Kept(_MOST_INSTRUCTIONS)
"""By form, for all modules."""
_known: Kept[tuple[_Family, tuple[object, ...]], _Known] = Kept(_MOST_INSTRUCTIONS)
"""By form, and sizes and constants: many fusions of a program are the same."""


def _known_of(computation: HloComputation) -> _Known:
    form = Form(computation)
    structure = form.structure
    family = _families.get(structure)
    if family is None:
        family = _families.keep(structure, _Family(computation, is_dense=form.is_dense), len(structure))
    key = family, (*form.sizes, *form.constants)
    found = _known.get(key)
    if found is None:
        if not family.classes.hold(form.sizes):
            family = _Family(computation, is_dense=False)
        found = _known.keep(key, _Known(computation, family, form), len(structure))
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

    def is_identity(self, fusion: HloInstruction) -> bool:
        """See `FusedBody`."""
        return self._known(fusion).is_identity()

    def _known(self, fusion: HloInstruction) -> _Known:
        computation = fusion.attributes.calls
        found = self._canonical.get(computation)
        if found is None:
            found = self._canonical[computation] = _known_of(computation)
        return found

    def kernel(self, fusion: HloInstruction, sharing: Mapping[int, int]) -> EmittedKernel:
        """The kernel of a fusion; `sharing`: see `emit_fusion`."""
        with spanning(Track.COMPILING, f"emit {fusion.name}"):
            return self._known(fusion).kernel(sharing)

    def row_answers(self, fusion: HloInstruction) -> _Rows:
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
            allowed = self._known(instruction).may_overwrite(operand, output)
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

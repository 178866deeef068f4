"""Find the rows that a native loop can hold: kernels and copies, and no others.

An instruction's rule in `../lowering_rules` runs once, with a context that keeps kernels and copies, and refuses calls
of Python and of BLAS. `cost.py` estimates their time, and `emit.py` writes them into the loop's kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ..cost import BYTE
from ..emit.convolution import sizes_of
from ..emitted_kernel import EmittedKernel
from ..loops.statements import walk
from ..lowering_rules import lowering_rule, share_rule
from ..lowering_rules.table import LoweringContext
from ..runtime.program import Argument, LoweringRefused, pointer


class Scratch(NamedTuple):
    """Memory of the instruction: one more place."""

    element_type: ElementType
    elements: int


class Table(NamedTuple):
    """A constant of the instruction: one more place."""

    array: np.ndarray


class CallKernel(NamedTuple):
    """A kernel, and the numbers of its places."""

    kernel: EmittedKernel
    operands: tuple[int, ...]
    outputs: tuple[int, ...]


class Copy(NamedTuple):
    """A copy of a whole array from one place to another, unless they are the same."""

    target: int
    source: int


@dataclass(frozen=True, slots=True)
class Part:
    """The kernels, copies and memory that an instruction adds to a loop's kernel."""

    steps: tuple[Scratch | Table | CallKernel | Copy, ...]
    """In order. Their places: the leaves of the instruction's operands, the leaves of its result, scratch memory
    and tables."""
    statements: int
    nanoseconds: float
    pays: bool = True
    """False where the row calls BLAS, which is faster than the kernel."""


class _Recorder(LoweringContext):
    """The context that keeps the steps. Its places are the bases of pointers."""

    def __init__(self, instruction: HloInstruction) -> None:
        self.steps: list[Scratch | Table | CallKernel | Copy] = []
        self.copied = 0
        self._share = share_rule(instruction.opcode)
        self._instruction = instruction
        self._operands = [pointer(n) for n, _ in enumerate(s for o in instruction.operands for s in o.shape.leaves())]
        self._results = [pointer(n) for n, _ in enumerate(instruction.shape.leaves(), len(self._operands))]
        self._places = len(self._operands) + len(self._results)

    def operands(self, instruction: HloInstruction) -> list[Argument]:
        return self._operands

    def results(self, instruction: HloInstruction) -> list[Argument]:
        return self._results

    def scratch(self, element_type: ElementType, count: int) -> Argument:
        self.steps.append(Scratch(element_type, count))
        self._places += 1
        return pointer(self._places - 1)

    def constant(self, array: np.ndarray) -> Argument:
        self.steps.append(Table(array))
        self._places += 1
        return pointer(self._places - 1)

    def copy(self, target: Argument, source: Argument, nbytes: int, name: str) -> None:
        self.steps.append(Copy(_number(target), _number(source)))
        output = target.base - len(self._operands)
        if self._share is None or not self._share(self._instruction, source.base, output):
            self.copied += nbytes  # a loop updates its state in place, whatever the size of an array

    def kernel(
        self, name: str, kernel: EmittedKernel, operands: Sequence[Argument], outputs: Sequence[Argument]
    ) -> None:
        self.steps.append(CallKernel(kernel, tuple(map(_number, operands)), tuple(map(_number, outputs))))


def _number(place: Argument) -> int:
    if place.word:
        raise LoweringRefused("it reads or writes parts of arrays")
    return place.base


_parts: WeakKeyDictionary[HloComputation, dict[HloInstruction, Part | None]] = WeakKeyDictionary()


def part_of(instruction: HloInstruction, computation: HloComputation) -> Part | None:
    """The kernels and copies of an instruction, in a computation, with rows of its own; None if it needs other rows."""
    parts = _parts.setdefault(computation, {})
    if instruction not in parts:
        join = JOINING.get(instruction.opcode)
        parts[instruction] = None if join is None else join(instruction)
    return parts[instruction]


def _by_its_row(instruction: HloInstruction) -> Part | None:
    rule = lowering_rule(instruction.opcode)
    if rule is None:
        return None
    recorder = _Recorder(instruction)
    try:
        rule(recorder, instruction)
    except LoweringRefused:
        return None
    kernels = [step.kernel for step in recorder.steps if isinstance(step, CallKernel)]
    statements = sum(1 for kernel in kernels for _ in walk(kernel.program.body))
    nanoseconds = sum(kernel.nanoseconds for kernel in kernels) + BYTE * recorder.copied
    return Part(tuple(recorder.steps), statements, nanoseconds)


MOST_CONVOLUTION = 2_000
"""Multiplications of a convolution: from 3,000 on, tiles of sums are faster."""


def _convolution(instruction: HloInstruction) -> Part | None:
    part = _by_its_row(instruction)
    if part is None:
        return None
    sizes = sizes_of(instruction)
    if not sizes.is_product:
        return part
    work = sizes.batch * sizes.positions * sizes.made * sizes.depth
    return replace(part, pays=work <= MOST_CONVOLUTION)


JOINING: Mapping[Opcode, Callable[[HloInstruction], Part | None]] = {
    Opcode.CHOLESKY: _by_its_row,
    Opcode.CONVOLUTION: _convolution,
    Opcode.CUSTOM_CALL: _by_its_row,
    Opcode.REDUCE_WINDOW: _by_its_row,
    Opcode.SCATTER: _by_its_row,
    Opcode.SELECT_AND_SCATTER: _by_its_row,
    Opcode.SORT: _by_its_row,
    Opcode.TOPK: _by_its_row,
    Opcode.TRIANGULAR_SOLVE: _by_its_row,
}
"""How instructions with rows of their own join a loop; None, and all others: they keep it in rows. See `part_of`."""

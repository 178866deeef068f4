"""The rules of operations that have their own rows in a program, and what a rule may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.collapse import FusedBody
from ..emit.kernel import EmittedKernel
from ..runtime.program import Argument, ProgramBuilder


class RowContext(Protocol):
    """What lowering offers to a rule. A row is an instruction of the program's table."""

    @property
    def builder(self) -> ProgramBuilder:
        """The program so far; rules add rows."""

    def operands(self, instruction: HloInstruction) -> list[Argument]:
        """The addresses of the leaves of all operands, in order; the arrays are dense and row-major."""

    def results(self, instruction: HloInstruction) -> list[Argument]:
        """The addresses of the result's leaves. A leaf may share an operand's buffer only if `SHARE` allows it."""

    def inlined(self, instruction: HloInstruction) -> Mapping[int, tuple[FusedBody, Sequence[Argument]]]:
        """The operands that the rule's kernel has to compute itself: by their number, the computation and its own
        operands. Nothing is in memory for these."""

    @property
    def has_blas(self) -> bool:
        """True if `builder` can call BLAS; if not, a kernel has to do the work."""

    def scratch(self, element_type: ElementType, count: int) -> Argument:
        """Memory for `count` elements, for the rows of this instruction. Aligned to 64 bytes; its contents are
        arbitrary."""

    def device_word(self, number: int) -> Argument:
        """The address of a u32 that each device has for itself: 0 is its replica, 1 its partition."""

    def kernel(
        self, name: str, kernel: EmittedKernel, operands: Sequence[Argument], outputs: Sequence[Argument]
    ) -> None:
        """Add a row that calls an emitted kernel; `name` is shown to people. The kernel's pointer parameters are
        numbers in `operands` and `outputs`."""


RowRule = Callable[[RowContext, HloInstruction], None]
"""rule(context, instruction): add the rows that compute the instruction's result from its operands."""

ROWS: dict[Opcode, RowRule] = {}
"""Filled by the files of the families."""

ShareRule = Callable[[HloInstruction, int, int], bool]
"""rule(instruction, operand leaf, result leaf): may the result be written over the operand?"""

SHARE: dict[Opcode, ShareRule] = {}
"""For opcodes that are not here, no result may."""

HOW: dict[Opcode, str] = {}
"""What computes the row, in a few words for `docs/ops.md`."""


def register(*opcodes: Opcode, how: str = "") -> Callable[[RowRule], RowRule]:
    """Decorator: the function is the row rule of `opcodes`; `how`: see `HOW`."""

    def decorate(rule: RowRule) -> RowRule:
        for opcode in opcodes:
            assert opcode not in ROWS, f"two row rules for {opcode}"
            ROWS[opcode] = rule
            HOW[opcode] = how
        return rule

    return decorate

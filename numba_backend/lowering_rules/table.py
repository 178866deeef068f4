"""The table of lowering rules, for operations with rows of their own, and the interface that rules use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ..emit.collapse import FusedBody
from ..emitted_kernel import EmittedKernel
from ..runtime.blas import Gemm
from ..runtime.program import Argument, LoweringRefused, ProgramBuilder


@dataclass(frozen=True, slots=True, eq=False)
class PieceMemory:
    """Scratch memory with a part for each piece. A part is needed only while the piece is computed."""

    nbytes: int
    """Bytes of a part. A kernel finds its part as if the parts of all pieces followed each other."""
    more: int = 0
    """Bytes after the last one that may be read."""


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel that is called for one piece after another. Its range is a multiple of the number of pieces."""

    name: str
    kernel: EmittedKernel
    operands: Sequence[Argument | PieceMemory]
    outputs: Sequence[Argument | PieceMemory]


class LoweringContext(ABC):
    """The interface that a rule writes rows with. A row is an instruction of the program's table. Where there are none
    but calls of kernels and copies, as in a native loop, all others are refused: LoweringRefused."""

    has_blas = False
    """True if `builder` can call BLAS; if not, a kernel has to do the work."""
    has_pieces = False
    """True if there is `by_pieces`."""

    @property
    def builder(self) -> ProgramBuilder:
        """The program so far; rules add rows."""
        raise LoweringRefused("it is more than kernels and copies")

    @abstractmethod
    def operands(self, instruction: HloInstruction) -> list[Argument]:
        """The addresses of the leaves of all operands, in order; the arrays are dense and row-major."""

    @abstractmethod
    def results(self, instruction: HloInstruction) -> list[Argument]:
        """The addresses of the result's leaves. A leaf may share an operand's buffer only if `SHARE` allows it."""

    def is_read(self, instruction: HloInstruction, leaf: int) -> bool:
        """False if nothing reads a leaf of the result, so that it need not be written."""
        return True

    def inlined(self, instruction: HloInstruction) -> Mapping[int, tuple[FusedBody, Sequence[Argument]]]:
        """The operands that the rule's kernel has to compute itself: by their number, the computation and its own
        operands. Nothing is in memory for these."""
        return {}

    @abstractmethod
    def scratch(self, element_type: ElementType, count: int) -> Argument:
        """Memory for `count` elements, for the rows of this instruction. Aligned to 64 bytes; its contents are
        arbitrary."""

    def constant(self, array: np.ndarray) -> Argument:
        """Memory with the numbers of an array."""
        return self.builder.constant(array)

    partitions = 0
    """How many partitions the program has on each replica; 0 for a program of one device, which has no device words."""

    def device_word(self, number: int) -> Argument:
        """The address of a u32 that each device has for itself: 0 is its replica, 1 its partition."""
        raise LoweringRefused("it asks which device it runs on")

    @abstractmethod
    def kernel(
        self, name: str, kernel: EmittedKernel, operands: Sequence[Argument], outputs: Sequence[Argument]
    ) -> None:
        """Add a row that calls an emitted kernel; `name` is shown to people. The kernel's pointer parameters are
        numbers in `operands` and `outputs`."""

    @abstractmethod
    def copy(self, target: Argument, source: Argument, nbytes: int, name: str) -> None:
        """Add a row that copies bytes to a place that does not overlap, in threads if they are many; `name` is the
        instruction's name."""

    def product(self, gemm: Gemm, a: Argument, b: Argument, c: Argument) -> None:
        """Add a row that computes the instruction's result, c, as a matrix product or a batch of them, and the
        instructions that follow it in an output fusion."""
        raise LoweringRefused("it calls BLAS")

    def by_pieces(self, pieces: int, steps: Sequence[Step]) -> None:
        """Add a row that calls the kernels of the instruction one after another, all of them for one piece and then for
        the next. After them the row runs the instructions that follow in an output fusion, which may have other
        pieces."""
        raise LoweringRefused("it has pieces")


LoweringRule = Callable[[LoweringContext, HloInstruction], None]
"""rule(context, instruction): add the rows that compute the instruction's result from its operands."""

LOWERING_RULES: dict[Opcode, LoweringRule] = {}
"""Filled by the files of the families."""

ShareRule = Callable[[HloInstruction, int, int], bool]
"""rule(instruction, operand leaf, result leaf): may the result be written over the operand?"""

SHARE: dict[Opcode, ShareRule] = {}
"""The rules by opcode. Without a rule, no result may be written over an operand."""

@dataclass(frozen=True, slots=True)
class OutputRows:
    """The rows of an instruction's result. They may be computed in pieces, each followed by the rest of an output
    fusion."""

    leading: tuple[int, ...]
    """The dimensions of the result that number the rows."""
    pieces: Sequence[int]
    """How many pieces there may be, with as many rows each, the best number first; with the others more may follow.
    None: it is a call of BLAS, which cuts the rows itself."""


OutputRowsRule = Callable[[HloInstruction], OutputRows | None]
"""rule(instruction): None if nothing may follow row by row."""

OUTPUT_ROWS: dict[Opcode, OutputRowsRule] = {}
"""Filled by the files of the families. For opcodes that are not here, nothing follows."""

HOW: dict[Opcode, str] = {}
"""For `docs/ops.md`, in a few words: how the row is computed."""


def register(*opcodes: Opcode, how: str = "") -> Callable[[LoweringRule], LoweringRule]:
    """Decorator: the function is the row rule of `opcodes`; `how`: see `HOW`."""

    def decorate(rule: LoweringRule) -> LoweringRule:
        for opcode in opcodes:
            assert opcode not in LOWERING_RULES, f"two row rules for {opcode}"
            LOWERING_RULES[opcode] = rule
            HOW[opcode] = how
        return rule

    return decorate

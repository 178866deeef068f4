"""Which rows a native loop can hold: those that are kernels and nothing else.

An instruction's rule in `../rows` is asked with a context that takes kernels and copies, and refuses calls of Python
and of BLAS. What it took are the kernels that the loop will hold, so that their costs are known too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.convolution import sizes_of
from ..emit.kernel import EmittedKernel
from ..loops.statements import walk
from ..rows import row_rule, share_rule
from ..rows.table import RowContext
from ..runtime.program import ProgramBuilder


@dataclass(frozen=True, slots=True)
class Part:
    """What an instruction adds to a loop's kernel."""

    statements: int
    nanoseconds: float
    pays: bool = True
    """False where the row calls BLAS, which is faster than the kernel."""


_OFFERED = frozenset(name for kind in (RowContext, ProgramBuilder) for name in dir(kind) if not name.startswith("_"))
"""What a rule may ask for. Of that, a loop's kernel holds no more than `_Recorder` has."""


class _Refused(Exception):
    """The rule wants something that a kernel cannot hold."""


@dataclass(frozen=True, eq=False)
class _Memory:
    """Stands for the memory of a value."""


class _Recorder:
    """The context that takes kernels; see `RowContext`."""

    has_blas = has_pieces = False

    def __init__(self, instruction: HloInstruction) -> None:
        self.kernels: list[EmittedKernel] = []
        self.copied = 0
        self._operands = [_Memory() for operand in instruction.operands for _ in operand.shape.leaves()]
        share = share_rule(instruction.opcode)
        self._results = [
            next((m for n, m in enumerate(self._operands) if share is not None and share(instruction, n, k)), _Memory())
            for k, _ in enumerate(instruction.shape.leaves())
        ]

    @property
    def builder(self) -> _Recorder:
        return self

    def __getattr__(self, name: str) -> Any:
        if name in _OFFERED:
            raise _Refused(name)
        raise AttributeError(f"neither a context nor a builder has {name!r}")

    def operands(self, instruction: HloInstruction) -> list[_Memory]:
        return self._operands

    def results(self, instruction: HloInstruction) -> list[_Memory]:
        return self._results  # a loop updates its state in place, whatever the size of an array

    def inlined(self, instruction: HloInstruction) -> dict[int, Any]:
        return {}  # a loop computes all operands before

    def scratch(self, element_type: ElementType, count: int) -> _Memory:
        return _Memory()

    def copy(self, target: _Memory, source: _Memory, nbytes: int, name: str = "") -> None:
        self.copied += nbytes

    def kernel(self, name: str, kernel: EmittedKernel, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.kernels.append(kernel)


def _by_its_row(instruction: HloInstruction) -> Part | None:
    """The kernels of the instruction's rows; None if there are other rows."""
    rule = row_rule(instruction.opcode)
    if rule is None:
        return None
    recorder = _Recorder(instruction)
    try:
        rule(recorder, instruction)  # type: ignore[arg-type]
    except _Refused:
        return None
    statements = sum(sum(1 for _ in walk(kernel.program.body)) for kernel in recorder.kernels)
    return Part(statements, sum(k.cost * k.extent for k in recorder.kernels) + 0.05 * recorder.copied)


MOST_CONVOLUTION = 2_000
"""Multiplications of a convolution: from 3,000 on, patches and BLAS are faster."""


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
"""How instructions with rows of their own join a loop; None, and all others: they keep it in rows."""

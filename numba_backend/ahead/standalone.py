"""A program without addresses: what leaves the process. `collect` makes it where `lowering` makes a table for the
executor.

The rows are those of the executor (`runtime/executor.py`), as data. A place in memory is a base and an offset: base
numbers from 0 on are the arguments, then the results, then the block of temporary memory; `CONSTANTS` is one block of
all constants. Products are kernels of their own (`product.py`). What needs Python or a library is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...hlo.buffers.assignment import ALIGNMENT, BufferAssignment
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ..bodies import Bodies
from ..lowering import lower_into
from ..rows.table import RowContext
from ..runtime.blas import Gemm
from ..runtime.kernel import KernelSource
from ..runtime.program import Argument, Label, ProgramBuilder, RowRefused, watch
from .product import add_product
from .rules import RULES

CONSTANTS = -2
"""The base of places in the block of constants."""
WATCH = watch()
"""The argument of a loop that looks for interrupts; outside of this process nobody interrupts it."""


PARALLEL = """\
#ifndef HLOOM_PARALLEL
#define HLOOM_PARALLEL
/* How to use threads. `run` calls task(data, lo, hi) for ranges that together are 0 <= i < extent, in any order,
   perhaps at the same time, each range of at least `grain` numbers except the last, and returns when all are done. */
typedef struct hloom_parallel {
    void *context;
    void (*run)(void *context, int64_t extent, int64_t grain, void (*task)(void *data, int64_t lo, int64_t hi),
                void *data);
} hloom_parallel;
#endif
"""
"""How C declares the way to threads."""

NO_BUFFER, BAD_TEMPORARY = 1, 2
"""What the function that runs the rows returns instead of 0."""


@dataclass(frozen=True, slots=True)
class CallKernel:
    """Call a kernel for lo, hi = 0, extent. The range may be cut into pieces of at least `grain`; 0: never."""

    kernel: int
    arguments: tuple[Argument, ...]
    extent: int
    grain: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy bytes; the two regions may overlap."""

    destination: Argument
    source: Argument
    nbytes: int


@dataclass(frozen=True, slots=True)
class Zero:
    """Fill with zero bytes."""

    destination: Argument
    nbytes: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at a row."""

    target: int


@dataclass(frozen=True, slots=True)
class JumpIfFalse:
    """Continue at a row if the byte at `pred` is 0."""

    pred: Argument
    target: int


@dataclass(frozen=True, slots=True)
class Switch:
    """Continue at a row by the s32 at `index`; out of range at the last target."""

    index: Argument
    targets: tuple[int, ...]


Row = CallKernel | Copy | Zero | Jump | JumpIfFalse | Switch


@dataclass(frozen=True, slots=True, eq=False)
class StandaloneProgram:
    """A compiled module, ready to be written in another form."""

    arguments: tuple[Shape, ...]
    results: tuple[Shape, ...]
    kernels: tuple[KernelSource, ...]
    rows: tuple[Row, ...]
    constants: bytes
    temporary_bytes: int
    """Of the block of temporary memory, which is aligned to `ALIGNMENT`."""

    @property
    def needed(self) -> tuple[int, ...]:
        """The bases of arguments and results that have bytes."""
        return tuple(k for k, shape in enumerate((*self.arguments, *self.results)) if shape.byte_size)

    @property
    def targets(self) -> frozenset[int]:
        """The rows to which others jump; the number of rows is the end."""
        found: set[int] = set()
        for row in self.rows:
            if isinstance(row, (Jump, JumpIfFalse)):
                found.add(row.target)
            elif isinstance(row, Switch):
                found.update(row.targets)
        return frozenset(found)


class _Builder(ProgramBuilder):
    """Collects rows as data."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Callable[[], Row]] = []
        self.kernels: list[KernelSource] = []
        self._numbers: dict[str, int] = {}
        self.constants = bytearray()

    def kernel(
        self, kernel: KernelSource, arguments: Sequence[Argument], extent: int, grain: int = 0,
        nanoseconds: float | None = None,
    ) -> None:  # fmt: skip
        if not extent:
            return
        number = self._numbers.setdefault(kernel.identity, len(self.kernels))
        if number == len(self.kernels):
            self.kernels.append(kernel)
        row = CallKernel(number, tuple(arguments), extent, grain if extent >= 2 * grain else 0)
        self.rows.append(lambda: row)

    def native_loop(
        self, kernel: KernelSource, arguments: Sequence[Argument], extent: int, grain: int = 0,
        nanoseconds: float | None = None,
    ) -> None:  # fmt: skip
        self.kernel(kernel, arguments, extent, grain)

    def copy(self, destination: Argument, source: Argument, nbytes: int) -> None:
        if nbytes:
            self.rows.append(lambda: Copy(destination, source, nbytes))

    def zero(self, destination: Argument, nbytes: int) -> None:
        if nbytes:
            self.rows.append(lambda: Zero(destination, nbytes))

    def own_rule(self, opcode: object) -> Callable[..., None] | None:
        return RULES.get(opcode)  # type: ignore[call-overload]

    def place(self, label: Label) -> None:
        label.row = len(self.rows)

    def jump(self, target: Label) -> None:
        self.rows.append(lambda: Jump(_row(target)))

    def jump_if_false(self, pred: Argument, target: Label) -> None:
        self.rows.append(lambda: JumpIfFalse(pred, _row(target)))

    def switch(self, index: Argument, targets: Sequence[Label]) -> None:
        self.rows.append(lambda: Switch(index, tuple(map(_row, targets))))

    def callback(self, function: Callable[[tuple[int, ...]], None], arguments: Sequence[Argument]) -> None:
        raise RowRefused("it calls Python, or a library of this process")

    def native(
        self, function: KernelSource, arguments: Sequence[Argument], *, keep: object = None, in_blas: bool = False
    ) -> None:
        raise RowRefused("it calls a function of this process")

    def gemm(self, gemm: Gemm, a: Argument, b: Argument, c: Argument) -> None:
        if not gemm.is_empty:
            add_product(self, gemm, a, b, c)

    def constant(self, values: np.ndarray) -> Argument:
        self.constants.extend(bytes(-len(self.constants) % ALIGNMENT))
        place = Argument("pointer", CONSTANTS, len(self.constants))
        self.constants.extend(np.ascontiguousarray(values).tobytes())
        return place


def _row(label: Label) -> int:
    assert label.row is not None, "a row jumps to a label that was never placed"
    return label.row


def collect(assignment: BufferAssignment, bodies: Bodies) -> StandaloneProgram:
    """The program of a module with buffers. UnsupportedError names what needs Python or a library."""
    builder = _Builder()
    entry = assignment.module.entry
    _, temporary = lower_into(builder, assignment, bodies)
    return StandaloneProgram(
        tuple(leaf for p in entry.parameters for leaf in p.shape.leaves()),
        tuple(entry.root.shape.leaves()),
        tuple(builder.kernels),
        tuple(row() for row in builder.rows),
        bytes(builder.constants),
        temporary,
    )


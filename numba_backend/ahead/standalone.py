"""Collect a program without addresses, so that it can leave the process: `collect` makes it where `lowering` makes a
table for the executor.

Its rows are the executor's rows (`runtime/executor.py`), as data. A place in memory is a base and an offset: base
numbers from 0 on are the arguments, then the results, then the block of temporary memory; `CONSTANTS` is one block of
all constants. Products are kernels of their own (`product.py`). A program that needs Python or a library is refused.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NoReturn

import numpy as np

from ...hlo.buffers.assignment import ALIGNMENT, BufferAssignment
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ..fused_computations import FusedComputations
from ..lowering import lower_into
from ..runtime.blas import Gemm
from ..runtime.chain import Cut, Stage
from ..runtime.kernel import KernelSource
from ..runtime.program import Argument, Label, LoweringRefused, ProgramBuilder, watch
from .blas import Blas
from .product import add_product
from .rules import RULES

CONSTANTS = -2
"""The base of places in the block of constants."""
WATCH = watch()
"""The argument of a loop that looks for interrupts; outside of this process there are none."""


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
"""The errors of the function that runs the rows. It returns 0 if there is none."""


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


@dataclass(frozen=True, slots=True)
class CallBlas:
    """A product of matrices, or a batch of them, by the BLAS that is linked."""

    gemm: Gemm
    a: Argument
    b: Argument
    c: Argument


Row = CallKernel | CallBlas | Copy | Zero | Jump | JumpIfFalse | Switch


@dataclass(frozen=True, slots=True, eq=False)
class StandaloneProgram:
    """A compiled module, ready to be written in another form."""

    arguments: tuple[Shape, ...]
    results: tuple[Shape, ...]
    kernels: tuple[KernelSource, ...]
    rows: tuple[Row, ...]
    constants: bytes
    temporary_bytes: int
    """Bytes of the block of temporary memory, which is aligned to `ALIGNMENT`."""
    blas: Blas | None = None
    """The BLAS that `CallBlas` calls."""
    static_arena: bool = False
    """Whether the code has temporary memory of its own, for a caller that gives none."""

    @property
    def needed(self) -> tuple[int, ...]:
        """The bases of arguments and results that have bytes."""
        return tuple(k for k, shape in enumerate((*self.arguments, *self.results)) if shape.byte_size)

    @property
    def targets(self) -> frozenset[int]:
        """The rows that jumps lead to; the number of rows is the end."""
        single = {row.target for row in self.rows if isinstance(row, (Jump, JumpIfFalse))}
        return frozenset(single.union(*(row.targets for row in self.rows if isinstance(row, Switch))))


class _Builder(ProgramBuilder):
    """Collects rows as data."""

    has_pieces = False

    def __init__(self, blas: Blas | None) -> None:
        super().__init__()
        self._blas = blas
        self.rows: list[Callable[[], Row]] = []
        self.kernels: list[KernelSource] = []
        self._numbers: dict[str, int] = {}
        self.constants = _Constants()

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

    native_loop = kernel

    def copy(self, destination: Argument, source: Argument, nbytes: int) -> None:
        if nbytes:
            self.rows.append(lambda: Copy(destination, source, nbytes))

    def zero(self, destination: Argument, nbytes: int) -> None:
        if nbytes:
            self.rows.append(lambda: Zero(destination, nbytes))

    def own_rule(self, opcode: object) -> Callable[..., None] | None:
        return RULES.get(opcode) if isinstance(opcode, Opcode) else None

    def place(self, label: Label) -> None:
        label.row = len(self.rows)

    def jump(self, target: Label) -> None:
        self.rows.append(lambda: Jump(_row(target)))

    def jump_if_false(self, pred: Argument, target: Label) -> None:
        self.rows.append(lambda: JumpIfFalse(pred, _row(target)))

    def switch(self, index: Argument, targets: Sequence[Label]) -> None:
        self.rows.append(lambda: Switch(index, tuple(map(_row, targets))))

    def callback(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise LoweringRefused("it calls Python, or a library of this process")

    native = pieces = callback

    def gemm(self, gemm: Gemm, a: Argument, b: Argument, c: Argument, after: Sequence[Stage] = ()) -> None:
        if gemm.is_empty:
            return
        if self._blas is None or not gemm.k:
            add_product(self, gemm, a, b, c)
        else:
            self.rows.append(lambda: CallBlas(gemm, a, b, c))
        for e in after:
            self.kernel(e.kernel, e.arguments, e.extent, e.grain, e.nanoseconds)

    def chain(self, stages: Sequence[Stage], cut: Cut, grain: int, *, in_parts: bool) -> None:
        for stage in stages:
            self.kernel(stage.kernel, stage.arguments, stage.extent, stage.grain, stage.nanoseconds)

    def constant(self, values: np.ndarray) -> Argument:
        return Argument("pointer", CONSTANTS, self.constants.place(np.ascontiguousarray(values).tobytes()))


class _Constants:
    """Constants at places in one block; equal ones share theirs. `kept` leaves out constants that no row reads."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._end = 0

    def place(self, data: bytes) -> int:
        """Where these bytes are."""
        if data not in self._places:
            self._places[data] = self._end
            self._end += max(-(-len(data) // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        return self._places[data]

    def kept(self, rows: Sequence[Row]) -> tuple[tuple[Row, ...], bytes]:
        """The rows, and the block of those constants that they read."""
        blocks = sorted((start, data) for data, start in self._places.items())
        starts = [start for start, _ in blocks]
        read = {bisect.bisect_right(starts, a.word) - 1 for row in rows for a in _places(row) if a.base == CONSTANTS}
        moved: dict[int, int] = {}
        block = bytearray()
        for number in sorted(read):
            block.extend(bytes(-len(block) % ALIGNMENT))
            moved[number] = len(block) - starts[number]
            block.extend(blocks[number][1])

        def move(argument: Argument) -> Argument:
            if argument.base != CONSTANTS:
                return argument
            number = bisect.bisect_right(starts, argument.word) - 1
            return argument._replace(word=argument.word + moved[number])

        return tuple(_with_places(row, move) for row in rows), bytes(block)


def _places(row: Row) -> list[Argument]:
    values = row.arguments if isinstance(row, CallKernel) else [getattr(row, f.name) for f in fields(row)]
    return [value for value in values if isinstance(value, Argument)]


def _with_places(row: Row, change: Callable[[Argument], Argument]) -> Row:
    if isinstance(row, CallKernel):
        return replace(row, arguments=tuple(map(change, row.arguments)))
    values = {f.name: getattr(row, f.name) for f in fields(row)}
    changed: dict[str, Any] = {name: change(value) for name, value in values.items() if isinstance(value, Argument)}
    return replace(row, **changed)


def _row(label: Label) -> int:
    assert label.row is not None, "a row jumps to a label that was never placed"
    return label.row


def collect(
    assignment: BufferAssignment, bodies: FusedComputations, blas: Blas | None = None, static_arena: bool = False
) -> StandaloneProgram:
    """The program of a module with buffers. UnsupportedError names the instruction that needs Python or a library."""
    builder = _Builder(blas)
    entry = assignment.module.entry
    _, temporary = lower_into(builder, assignment, bodies)
    rows, constants = builder.constants.kept([row() for row in builder.rows])
    return StandaloneProgram(
        tuple(leaf for p in entry.parameters for leaf in p.shape.leaves()),
        tuple(entry.root.shape.leaves()),
        tuple(builder.kernels),
        rows,
        constants,
        temporary,
        blas,
        static_arena,
    )


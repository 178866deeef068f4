"""Programs for the executor, built row by row. A row is an instruction of a program's table.

    builder = ProgramBuilder()
    builder.kernel(relu, [pointer(0), pointer(1), size(512)], extent=128, grain=16)
    builder.copy(pointer(2), pointer(1), nbytes=4096)
    program = builder.build()          # compiles in one batch what the store does not hold
    program.run([x_address, y_address, z_address])

A pointer is (base, byte offset); the bases are the addresses given to each call of `run`: inputs, outputs, the arena.
One program may run in several threads at once, with different bases.
"""

from __future__ import annotations

import ctypes
import operator
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import ml_dtypes
import numpy as np

from ...hlo.ir import HloInstruction
from ...hlo.support.loop_progress import LoopEvent, guarded
from ...hlo.support.named_address import NamedAddress
from ...hlo.support.snapshots import snapshot
from ...hlo.system import system
from ...hlo.timeline.spans import RECORDERS, Track, spanning
from ..machine import COPIED_BYTES, FLOPS, PIECE_NANOSECONDS, SHARE_NANOSECONDS
from .call import CALLER, ProgramBlock, header_words, program_function
from .callbacks import CALL_PYTHON, LOOK, callback_api
from .chain import Cut, Stage, chain_words
from .errors import ProgramError, ProgramExecutionError
from .executor import EXECUTOR, FUEL, HEADER_WORDS, Op
from .kernel import KernelSource, ParameterKind
from .long_kernels import LONG_PIECE, RUN_LONG, step_of
from .portable import NotPortable, PortableProgram, address_of, portable
from .store import KernelStore, default_store
from .threads import POOL_FUNCTIONS, pool_address

if TYPE_CHECKING:
    from .blas import Gemm

_NUMPY_DTYPES: dict[str, object] = {
    "pred": np.uint8, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
}  # fmt: skip

_BRIEF_WORK = 0.5
"""A program with less work than this is brief; 1 is a thread's share, about 3.5 us."""

_LEAST_NANOSECONDS = 20
"""The least time of a loop's iteration, with its jumps."""


class Argument(NamedTuple):
    """One word of the argument table; made by `pointer`, `size`, `scalar` and `ProgramBuilder.constant`."""

    kind: ParameterKind
    base: int  # -1: none, `word` is the value itself
    word: int  # a 64-bit pattern as a signed integer, or a byte offset from the base
    move: tuple[int, int] = (0, 0)  # of a pointer, in a chain: see chain.py

    def __str__(self) -> str:
        if self.kind != "pointer":
            return f"{self.word.kind} {self.word.name}" if isinstance(self.word, NamedAddress) else str(self.word)
        if self == _WATCH:
            return "watch"
        return f"constant@{self.word:#x}" if self.base < 0 else f"[{self.base}]+{self.word}"


def pointer(base: int, offset: int = 0) -> Argument:
    """The address `offset` bytes into the `base`-th block given to `Program.run`."""
    return Argument("pointer", base, offset)


_WATCH = Argument("pointer", -1, 1)  # no address: the executor puts its own there


def watch() -> Argument:
    """The watch as an argument of a native loop, which looks for interrupts with it: an int64 pointer."""
    return _WATCH


def size(value: int) -> Argument:
    """An int64, for example an extent, a stride or a count."""
    return Argument("size", -1, value)


def scalar(value: object, dtype: str) -> Argument:
    """One element of an XLA type (not c128) as a 64-bit pattern, converted as NumPy does; `scalar(0.5, "bf16")`."""
    if dtype not in _NUMPY_DTYPES:
        raise ProgramError(f"a {dtype} cannot be a scalar argument; pass a pointer to it")
    data = np.asarray(value).astype(_NUMPY_DTYPES[dtype]).tobytes()  # type: ignore[call-overload]
    return Argument("scalar", -1, int.from_bytes(data.ljust(8, b"\0"), "little", signed=True))


class Label:
    """A target for jumps: a row of the program; made by `ProgramBuilder.label`."""

    __slots__ = ("nanoseconds", "row")

    def __init__(self) -> None:
        self.row: int | None = None
        self.nanoseconds: float = 0.0
        """The estimated time of the rows before it."""


class _Row(NamedTuple):
    op: Op
    operands: tuple[int | KernelSource | Label, ...]
    shown: tuple[object, ...]
    origin: HloInstruction | None = None
    """The instruction that it is a part of, as far as known."""
    after: tuple[HloInstruction, ...] = ()
    """The instructions that the kernels after a product compute, or those after the first of a chain."""

    @property
    def targets(self) -> tuple[Label, ...]:
        return tuple([operand for operand in self.operands if isinstance(operand, Label)])

    def __str__(self) -> str:
        targets = " ".join(f"-> {target.row}" for target in self.targets)
        return " ".join([self.op.name.lower(), *map(str, self.shown), *([targets] if targets else [])])


class LoweringRefused(Exception):
    """A builder cannot have this row; the text says why."""


class ProgramBuilder:
    """Collects rows; `build` makes a Program of them. Rows run in the order in which they were added."""

    has_pieces = True
    """False for a program that runs each kernel of a chain as a whole: it has no parts of memory for pieces."""

    def __init__(self, compiler: Literal["numba"] | None = None) -> None:
        """`compiler`: of the kernels; see `KernelSource.compiler`."""
        self._compiler = compiler
        self.title = "program"
        """The program's name, for people."""
        self.origin: HloInstruction | None = None
        """The instruction that the rows which are added next are a part of."""
        self._rows: list[_Row] = []
        self._arguments: list[Argument] = []
        self._kept: list[object] = []
        self._constants: list[np.ndarray] = []
        self._bound = ""
        """Why the program cannot leave the process; "": it can."""
        self._parallel = False
        self._run_word: int | None = None
        """The argument that is 0 when a program starts, for the number of its run."""
        self._work = 0.0
        self._nanoseconds = 0.0

    def kernel(
        self, kernel: KernelSource, arguments: Sequence[Argument], extent: int, grain: int = 0,
        nanoseconds: float | None = None,
    ) -> None:  # fmt: skip
        """Call `kernel` for lo, hi = 0, extent; arguments are in the order of its parameters.

        When `grain` > 0 and `extent` >= 2 * grain, the range may be split over threads, in pieces of at least `grain`.
        So `grain` iterations should take about 1.5 us: with twice as much work a second thread pays. `nanoseconds`: the
        estimate of the whole range; without it, what follows from the grain.
        """
        shown = self._called(kernel, arguments, extent, grain)
        if extent == 0:
            return
        work = extent / grain * PIECE_NANOSECONDS / SHARE_NANOSECONDS if grain else 1
        estimated = work * SHARE_NANOSECONDS if nanoseconds is None else nanoseconds
        self._work += work
        self._nanoseconds += estimated
        step = step_of(extent, grain, estimated)
        if step is None:
            self._row(Op.KERNEL, shown, kernel, self._add(arguments), extent, grain)
        else:
            first = self._add(arguments)
            self._row(
                Op.LONG, (*shown, f"in steps of {step}"), RUN_LONG, kernel, first, extent, grain, step, LONG_PIECE
            )

    def native_loop(
        self, kernel: KernelSource, arguments: Sequence[Argument], extent: int, grain: int = 0
    ) -> None:
        """Call a kernel that may run for long: one of its arguments is `watch()`, and it returns early when
        ``interrupted(watch)`` is true. Then the program stops, as after a callback that raised.
        """
        shown = self._called(kernel, arguments, extent, grain)
        watches = [number for number, argument in enumerate(arguments) if argument == _WATCH]
        if len(watches) != 1 or kernel.parameters[watches[0]].dtype != "s64":
            raise ProgramError(f"native loop {kernel.name!r} needs one watch, for a pointer to s64")
        if extent == 0:
            return
        self._unknown()
        first = self._add(arguments)
        self._row(Op.NATIVE_LOOP, shown, kernel, first, extent, grain, first + watches[0])

    def copy(self, destination: Argument, source: Argument, nbytes: int) -> None:
        """Copy bytes; the two regions may overlap."""
        self._move(nbytes)
        if nbytes:
            shown = (destination, "<-", source, f"{nbytes} bytes")
            self._row(Op.COPY, shown, self._pointer(destination), self._pointer(source), _not_negative(nbytes))

    def zero(self, destination: Argument, nbytes: int) -> None:
        """Fill with zero bytes."""
        self._move(nbytes)
        if nbytes:
            self._row(Op.ZERO, (destination, f"{nbytes} bytes"), self._pointer(destination), _not_negative(nbytes))

    def own_rule(self, opcode: object) -> Callable[..., None] | None:
        """The rule that lowers an operation for this kind of builder, in place of `lowering_rules/`; or None."""
        return None

    def label(self) -> Label:
        """A new label, not yet placed."""
        return Label()

    def place(self, label: Label) -> None:
        """Let `label` mark the next row."""
        if label.row is not None:
            raise ProgramError("a label can be placed only once")
        label.row = len(self._rows)
        label.nanoseconds = self._nanoseconds

    def jump(self, target: Label) -> None:
        """Continue at `target`. A jump backwards also looks for interrupts: see callbacks.py."""
        if target.row is None:
            self._row(Op.JUMP, (), target)
            return
        self._work += 1  # an unknown number of times
        fuel = int(min(max(self._nanoseconds - target.nanoseconds, _LEAST_NANOSECONDS), FUEL))
        self._row(Op.LOOP, (), target, fuel)

    def jump_if_false(self, pred: Argument, target: Label) -> None:
        """Continue at `target`, which is further on, when the pred (one byte) that `pred` points to is false."""
        _forwards(target)
        self._row(Op.JUMP_IF_FALSE, (pred,), self._pointer(pred), target)

    def switch(self, index: Argument, targets: Sequence[Label]) -> None:
        """Continue at `targets[i]`, which is further on, for the s32 i that `index` points to; out of range at the last
        target, as in XLA."""
        if not targets:
            raise ProgramError("a switch needs at least one target")
        for target in targets:
            _forwards(target)
        self._row(Op.SWITCH, (index,), self._pointer(index), len(targets), *targets)

    def callback(
        self, function: Callable[[tuple[int, ...]], None], arguments: Sequence[Argument], keep: object = None
    ) -> None:
        """Call Python: `function(words)` gets each argument as a signed integer, pointers as addresses. `keep` lives as
        long as the program.

        An exception stops the program and is raised by `Program.run`.
        """
        words = ctypes.c_int64 * len(arguments)
        self._unknown()
        self._bound = "it calls Python"

        def call(address: int) -> None:
            if not RECORDERS:
                function(tuple(words.from_address(address)))
                return
            with spanning(Track.LIBRARIES, "in Python"):
                function(tuple(words.from_address(address)))

        self._kept += [call, keep]
        self._row(Op.PYTHON, (function, *arguments), id(call), self._add(arguments))

    def native(
        self, function: KernelSource, arguments: Sequence[Argument], *, keep: object = None, in_blas: bool = False
    ) -> None:
        """Call a function of the runtime, `function(arguments)`. It gets the address of the arguments' values and
        returns 0, or a status that stops the program. `keep` lives as long as the program. `in_blas`: it needs the
        pool, since the pool's block has the door to the BLAS."""
        self._unknown()
        self._parallel |= in_blas
        self._kept.append(keep)
        if keep is not None:
            self._bound = f"{function.name} uses an object of this process"
        self._row(Op.CALLBACK, (function.name, *arguments), function, self._add(arguments))

    def handler(
        self, function: KernelSource, plan: int, device: Argument, places: Sequence[Argument], *, keep: object,
        title: str,
    ) -> None:  # fmt: skip
        """Call a handler of XLA's typed FFI: `function` is `runtime/ffi.py`'s, and gets a row as `hlo/ffi/plans.py`
        describes it. `keep` owns the plan."""
        if self._run_word is None:
            self._run_word = self._add([size(0)])
        head = [size(plan), size(8 * (self._run_word - len(self._arguments))), device]
        self._unknown()
        self._parallel = True
        self._kept.append(keep)
        self._bound = f"{title} uses an object of this process"
        self._row(Op.CALLBACK, (title, *places), function, self._add([*head, *places]))

    def pieces(
        self,
        function: KernelSource,
        arguments: Sequence[Argument],
        pieces: int,
        nanoseconds: float | None = None,
        title: str = "",
    ) -> None:
        """Call a function of the runtime, `function(lo, hi, arguments)`, for pieces of work that threads may share. It
        needs the pool's block. `nanoseconds`: what all takes, as estimated; without it, it may take any time. However
        brief it is, the GIL is given up: it may have to wait at the door to the BLAS for a thread that forks. `title`:
        what people call it."""
        self._work += 1
        self._nanoseconds += FUEL if nanoseconds is None else nanoseconds
        self._parallel = True
        shown = (title or function.name, *arguments, f"for {pieces}")
        self._row(Op.KERNEL, shown, function, self._add(arguments), pieces, 1)

    def gemm(self, gemm: Gemm, a: Argument, b: Argument, c: Argument, after: Sequence[Stage] = ()) -> None:
        """A matrix product, or a batch of them; C overlaps neither A nor B. May be split over threads.

        `after`: kernels that run then, on rows of C, perhaps while other rows are not computed yet. The range of each
        goes through the rows of C in order: it is a multiple of their number, or a part of it.
        """
        if not gemm.is_empty:
            self._parallel = True
            self._work += 1
            self._nanoseconds += gemm.flop / FLOPS + sum(e.nanoseconds for e in after)
            kernels = [(e.kernel, self._add(e.arguments), e.extent, e.grain) for e in after]
            operands = gemm.operands(self._pointer(a), self._pointer(b), self._pointer(c), kernels)
            then = [part for e in after for part in ("then", e.kernel.name, *e.arguments, f"for {e.extent}")]
            self._row(Op.GEMM, (c, "<-", a, "@", b, gemm, *then), *operands, after=after)

    def chain(self, stages: Sequence[Stage], cut: Cut, grain: int, *, in_parts: bool) -> None:
        """Call kernels one after another, all of them for one piece of their rows and then for the next; threads share
        the pieces. `in_parts`: arrays that only the chain uses are in `parts_of(cut, grain)` parts. See
        runtime/chain.py."""
        for stage in stages:
            self._called(stage.kernel, stage.arguments, 0, 0)
        nanoseconds = sum(stage.nanoseconds for stage in stages)
        self._parallel |= grain > 0 and cut.pieces >= 2 * grain
        self._work += max(nanoseconds / SHARE_NANOSECONDS, _BRIEF_WORK)
        self._nanoseconds += nanoseconds
        first = self._add([size(0), *(argument for stage in stages for argument in stage.arguments)])
        shown = [part for stage in stages for part in ("then", stage.kernel.name, *stage.arguments)][1:]
        words = chain_words(stages, cut, first, grain, in_parts)
        self._row(Op.CHAIN, (*shown, f"for {cut.pieces}"), *words, after=stages[1:])

    def constant(self, values: np.ndarray) -> Argument:
        """A pointer to a copy of `values` (row-major), which lives as long as the program."""
        kept = np.array(values, order="C", copy=True)
        self._kept.append(kept)
        self._constants.append(kept)
        return Argument("pointer", -1, kept.ctypes.data)

    def build(self, store: KernelStore | None = None) -> Program:
        """The program. Kernels come from `store`, by default the process's; missing ones are compiled in one batch."""
        kernels = [operand for row in self._rows for operand in row.operands if isinstance(operand, KernelSource)]
        if store is None or store is default_store():
            codes = default_store().codes([*kernels, *_own_functions(self._parallel)])[: len(kernels)]
        else:
            codes = store.codes(kernels)
        entries = {kernel.identity: code.address for kernel, code in zip(kernels, codes)}
        rows, offsets, words = self._words()
        code = [entries[word.identity] if isinstance(word, KernelSource) else word for word in words]
        made = {kernel.identity: found.object_bytes for kernel, found in zip(kernels, codes)}
        # not the kernels: their nodes are many
        rows = tuple([_Row(row.op, row.targets, row.shown, row.origin, row.after) for row in rows])
        kept = [*self._kept, *codes]
        program = Program(rows, self._arguments, code, self._parallel, self._is_brief, kept, sum(made.values()))
        program.title, program.offsets = self.title, offsets
        return program

    def portable(self) -> PortableProgram:
        """The program as data, for another process. NotPortable says why that cannot be."""
        if self._bound:
            raise NotPortable(self._bound)
        return portable(
            self._words()[2], self._arguments, self._constants, parallel=self._parallel, brief=self._is_brief
        )

    @property
    def _is_brief(self) -> bool:
        return self._work < _BRIEF_WORK

    def _words(self) -> tuple[tuple[_Row, ...], list[int], list[int | KernelSource]]:
        """The rows with the last one; where each begins; their words."""
        rows = (*self._rows, _Row(Op.END, (), ()))
        offsets = [0]
        for row in rows:
            offsets.append(offsets[-1] + 1 + len(row.operands))
        words: list[int | KernelSource] = []
        for row in rows:
            words.append(row.op)
            for operand in row.operands:
                if isinstance(operand, Label):
                    if operand.row is None:
                        raise ProgramError("a row jumps to a label that was never placed")
                    words.append(offsets[operand.row])
                else:
                    words.append(operand)
        return rows, offsets, words

    def _move(self, nbytes: int) -> None:
        self._work += nbytes / COPIED_BYTES / SHARE_NANOSECONDS
        self._nanoseconds += nbytes / COPIED_BYTES

    def _unknown(self) -> None:
        """A row that may take long: a loop around it looks at the clock each time."""
        self._work += 1
        self._nanoseconds += FUEL

    def _row(
        self, op: Op, shown: tuple[object, ...], *operands: int | KernelSource | Label, after: Sequence[Stage] = ()
    ) -> None:
        if self._compiler is not None:
            operands = tuple([self._by_compiler(o) if isinstance(o, KernelSource) else o for o in operands])
        origins = tuple([stage.origin for stage in after if stage.origin is not None])
        self._rows.append(_Row(op, operands, shown, self.origin, origins))

    def _called(
        self, kernel: KernelSource, arguments: Sequence[Argument], extent: int, grain: int
    ) -> tuple[object, ...]:
        """The call of a kernel for people, if it may be called so."""
        kinds = [argument.kind for argument in arguments]
        expected = [parameter.kind for parameter in kernel.parameters]
        if kernel.convention != "kernel" or kinds != expected:
            raise ProgramError(f"kernel {kernel.name!r} takes ({kernel.signature}), got ({', '.join(kinds)})")
        if extent < 0 or grain < 0:
            raise ProgramError(f"kernel {kernel.name!r}: extent {extent} and grain {grain} must not be negative")
        self._parallel |= grain > 0 and extent >= 2 * grain
        return (kernel.name, *arguments, f"for {extent}", f"by {grain}" if grain else "")

    def _by_compiler(self, kernel: KernelSource) -> KernelSource:
        return replace(kernel, compiler=self._compiler) if kernel.convention == "kernel" else kernel

    def _add(self, arguments: Sequence[Argument]) -> int:
        first = len(self._arguments)
        self._arguments.extend(arguments)
        return first

    def _pointer(self, argument: Argument) -> int:
        if argument.kind != "pointer":
            raise ProgramError(f"expected a pointer, got a {argument.kind}")
        return self._add([argument])


class Program:
    """A built program; `run` may be called any number of times, from any thread."""

    title = "program"
    offsets: Sequence[int] = ()
    """Where each row begins, in words."""
    twin: Callable[[], Program] | None = None
    """Makes a program with the same words and with rows, if this one has none: it came from the store, or is large."""
    run: Callable[[Sequence[int]], None]
    """run(bases): run to the end.

    `bases` (a list or another sequence of integers) are the addresses of the blocks that pointers are relative to, at
    least `self.bases` of them. They are not checked: a wrong address reads or writes other memory. Raises ProgramError
    for too few bases, and passes on an exception of a callback.
    """

    def __init__(
        self, rows: Sequence[_Row], arguments: Sequence[Argument], code: Sequence[int], parallel: bool, brief: bool,
        kept: list[object], code_bytes: int = 0,
    ) -> None:  # fmt: skip
        self._rows = rows
        self.code_bytes = code_bytes
        """The size of the machine code of its kernels, each counted once."""
        self.bases: int = max((argument.base for argument in arguments), default=-1) + 1
        self._parallel = parallel
        values = HEADER_WORDS
        which = values + len(arguments)
        start = which + len(arguments)
        slow, failed = self._run_slowly, self._fail
        words = array("q", [len(arguments), values, which, start, system.c_address("malloc"), system.c_address("free")])
        words.extend([callback_api().buffer_info()[0], *default_store().get_many([CALL_PYTHON, LOOK])])
        words.extend(header_words(self.bases, parallel, brief, slow, failed))
        words.extend(argument.word for argument in arguments)
        words.extend(argument.base + 1 for argument in arguments)
        words.extend(code)
        self._block = ProgramBlock(words.tobytes())
        self._block.slow, self._block.failed, self._block.kept = slow, failed, kept
        self._code = self.address + 8 * start
        self.run = program_function(self._block)
        if any(isinstance(each, LoopEvent) for each in kept):
            self.run = guarded(self.run)
        _programs.add(self)
        for met in ON_PROGRAM:
            met(self)

    @property
    def address(self) -> int:
        """The address of its words."""
        return self._block.address

    @property
    def nbytes(self) -> int:
        """The number of bytes of its words."""
        return len(self._block)

    @property
    def rows(self) -> Sequence[_Row]:
        """The rows, in order."""
        if self.twin is not None:
            described = self.twin()
            self._rows, self.offsets, self.twin = described.rows, described.offsets, None
        return self._rows

    def forget_rows(self) -> None:
        """Rows refer to the module. `twin` makes them again."""
        self._rows, self.offsets = (), ()

    def word(self, address: int, number: int) -> int:
        """A word of the row at an address."""
        start = address - self.address + 8 * number
        return int.from_bytes(self._block[start : start + 8], "little", signed=True)

    def row_addresses(self) -> list[int]:
        """Where the words of each row begin."""
        rows = self.rows
        return [self._code + 8 * offset for offset in self.offsets[: len(rows)]]

    def row_at(self, address: int) -> _Row | None:
        """The row with words that begin at an address; None for the program itself."""
        rows = self.rows
        number = bisect_right(self.offsets, (address - self._code) >> 3) - 1
        return rows[number] if 0 <= number < len(rows) else None

    def to_text(self) -> str:
        """The table of rows, for people: `[1]+64` is 64 bytes into base 1, `-> 7` continues at row 7."""
        return "\n".join(f"{number:4d}  {row}".rstrip() for number, row in enumerate(self.rows))

    def _run_slowly(self, bases: Sequence[int]) -> None:
        """`run` calls this in unusual cases."""
        addresses = array("q", [operator.index(base) for base in bases])
        if len(addresses) < self.bases:
            raise ProgramError(f"the program needs {self.bases} bases, got {len(addresses)}")
        if self._parallel:
            pool_address()
        self.run(addresses)

    def _fail(self, bases: Sequence[int]) -> None:
        """`run` calls this when a row stopped the program without an exception."""
        raise ProgramExecutionError("a program could not be run: out of memory")


_programs: weakref.WeakSet[Program] = weakref.WeakSet()
ON_PROGRAM: list[Callable[[Program], object]] = []
"""Functions that are called with each program that is built."""


def programs() -> list[Program]:
    """All programs that there are now."""
    return snapshot(_programs)


def _own_functions(parallel: bool) -> list[KernelSource]:
    """The functions of the runtime that a program needs."""
    return [EXECUTOR, CALLER, CALL_PYTHON, LOOK, *(POOL_FUNCTIONS if parallel else ())]


def load(found: PortableProgram) -> Program | None:
    """The program in this process; None if the store does not have all its kernels. It has no rows."""
    store = default_store()
    codes = store.stored_codes([*found.kernels, *_own_functions(found.parallel)])
    if codes is None:
        return None
    code, values = found.code[:], found.values[:]
    for place, number in found.entries:
        code[place] = codes[number].address
    for place, kind, name in found.code_addresses:
        code[place] = address_of(kind, name)
    for place, kind, name in found.value_addresses:
        values[place] = address_of(kind, name)
    constants = [np.frombuffer(block, np.uint8).copy() for block in found.constants]
    for place, number, offset in found.value_constants:
        values[place] = constants[number].ctypes.data + offset
    codes = codes[: len(found.kernels)]
    arguments = [Argument("pointer", base, value) for base, value in zip(found.bases, values)]
    kept = [*constants, *codes]
    nbytes = sum([each.object_bytes for each in codes])
    return Program((), arguments, code, found.parallel, found.brief, kept, nbytes)


def _forwards(target: Label) -> None:
    if target.row is not None:
        raise ProgramError("only `jump` may continue at an earlier row: it looks for interrupts")


def _not_negative(nbytes: int) -> int:
    if nbytes < 0:
        raise ProgramError(f"a number of bytes must not be negative, got {nbytes}")
    return nbytes

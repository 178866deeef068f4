"""Write a loop program for a nest: walk the loops from the outside in.

    # c[i, j] = sum over p: total + a[i, p] * b[p, j]
    # Part(dimension='j', loop='strip')                             the schedule, as data
    # ...
    panel = local_array(4096, float32)                              Pack
    sums0 = local_array(16, float32)                                Accumulate, Unroll, Lanes
    ...
    for item in range(lo, hi):                                      Parallel, Part
        ...
        for column in range(left, right, 16):                       Split
            first = minimum(column, right - 16)                     "shift"
            panel[p * 16 + j] = x1[from_b + p * b0 + j]
            for row in range(top, below, 6):
                i = minimum(row, below - 6)
                sums0[j], ..., sums5[j] = 0
                for p in range(k):
                    factor0 = x0[from_a + p * a1]
                    for j in range(16):
                        sums0[j] = sums0[j] + factor0 * panel[p * 16 + j]
                    ...
                out[to + j] = sums0[j]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...hlo.support.memory_pressure import on_pressure
from ..emitted_kernel import HI, LO, EmittedKernel, program_of
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, maximum, minimum, times
from ..loops.statements import KernelParameter, LoopProgram, PointerParameter, SizeParameter
from ..loops.writer import Writer
from .algorithm import Algorithm
from .bands import Limits, OperandBand, rows_of_band
from .copies import Copies
from .nest import Loop, Nest, nest_of
from .offsets import OpenLoops, names_of
from .padding import TermsOfPadding
from .steps import Pack, Schedule
from .sums import Sums


def kernel_of(
    form: Any, algorithm_of: Callable[[Any], Algorithm], pointers: tuple[PointerParameter, ...],
    sizes: Mapping[str, int], schedule: Schedule, extent: int, cost: float | None = None, least: int = 1,
) -> EmittedKernel:  # fmt: skip
    """The kernel of the algorithm of a form under a schedule. `sizes`: all parameters that the algorithm and the
    schedule name. ScheduleError for a schedule that does not fit."""
    program = _program(form, algorithm_of, pointers, tuple(sizes), schedule)
    parameters: tuple[KernelParameter, ...] = (
        *pointers, *[SizeParameter(name, value) for name, value in sizes.items()]
    )  # fmt: skip
    return EmittedKernel(program, parameters, extent, cost, least=least)


@lru_cache(maxsize=128)
def _program(
    form: Any, algorithm_of: Callable[[Any], Algorithm], pointers: tuple[PointerParameter, ...], sizes: tuple[str, ...],
    schedule: Schedule,
) -> LoopProgram:  # fmt: skip
    """It sees no size, only the form: so a program is right for all sizes that have its form."""
    return program_under(algorithm_of(form), schedule, (*pointers, *[SizeParameter(name, 0) for name in sizes]))


on_pressure(_program.cache_clear)


def program_under(
    algorithm: Algorithm, schedule: Schedule, parameters: tuple[KernelParameter, ...], vector_bits: int = 0
) -> LoopProgram:
    """The program of an algorithm under a schedule. ScheduleError for a schedule that does not fit."""
    writer = Writer()
    write(algorithm, schedule, writer)
    return program_of(algorithm.name, parameters, writer, (algorithm, *schedule), vector_bits)


def write(algorithm: Algorithm, schedule: Schedule, writer: Writer) -> None:
    """Write the body of the kernel. ScheduleError for a schedule that does not fit."""
    Walk(nest_of(algorithm, schedule), writer).write()


class Walk:
    """The walk through a nest."""

    def __init__(self, nest: Nest, writer: Writer) -> None:
        self.nest, self.algorithm, self.writer = nest, nest.algorithm, writer
        self.here: OpenLoops = OpenLoops(nest, writer)
        self.copies: Copies = Copies(self.here)
        self.sums: Sums = Sums(self.here, self.copies)
        self.is_collecting = False
        """True inside of the loop with collected sums."""
        self.narrowed: dict[str, Limits] = {}
        """By loop: the iterations that a band leaves of it."""
        self.operand_bands: list[OperandBand] = [
            OperandBand(writer, band, self.algorithm, self.algorithm.operand(band.array))
            for band in nest.bands
            if band.array != self.algorithm.result.name
        ]

    def write(self) -> None:
        """The whole kernel."""
        nest, writer = self.nest, self.writer
        self.padding: TermsOfPadding | None = TermsOfPadding(self.here, nest.padding) if nest.padding else None
        if nest.slice:
            self.here.limits[nest.slice] = LO, HI
        if not nest.parallel.loops:
            self.copies.begin()
            self._inside(nest.loops, "")
            return
        with writer.loop("item", LO, HI) as item:
            self.copies.begin()
            self._take_apart(item)
            for band in self.operand_bands:
                start, _ = self.here.known_of(band.access)
                band.test_outside(start, self.here.limits[band.access.strides[-2][0]])
            around = nest.parallel.loops[-1]
            self._inside(nest.inside(around), around)

    def _take_apart(self, item: Name) -> None:
        """Compute the iteration of each parallel loop from the number of an item."""
        writer, parallel = self.writer, self.nest.parallel
        rest = item
        whole: list[Loop] = []
        for name, above in reversed(list(zip(parallel.loops, parallel.above, strict=True))):
            loop = self.nest[name]
            if loop.part is None:
                count = self.here.limits[name][1]
                self.here.starts[name], further = self._digit(name, above, rest, count)
                whole.append(loop)
            else:
                count, size = Name(f"{name}s"), Name(name)
                number, low, high = loop.part.names
                index, further = self._digit(number, above, rest, count)
                first = writer.assign(low, times(index, size))
                end = writer.assign(high, first + size)
                with writer.if_(index.eq(count - 1)):
                    writer.assign(end, self.here.limits[loop.dimension][1])
                self.here.limits[loop.dimension] = first, end
            rest = further
        if whole:
            for access in (*self.algorithm.operands, self.algorithm.result):
                start = self.here.offset_from(access.start, access, whole)
                self.here.known[access.name] = writer.assign(f"start_{access.name}", start), names_of(whole)

    def _digit(self, name: str, above: str, rest: Name, count: Expr) -> tuple[Name, Name]:
        """The last digit of a number, and the rest of it. The outermost loop has all that is left."""
        if above == self.nest.parallel.above[0]:
            return self.writer.assign(name, rest), rest
        further = self.writer.assign(above, rest // count)
        return self.writer.assign(name, rest - times(further, count)), further

    def _inside(self, loops: Sequence[Loop], around: str) -> None:
        """Write the body of the loop `around`."""
        if around:
            self._narrow_rows(around)
            loop, lanes = self.nest[around], self.nest.lanes
            if lanes and loop.inner == lanes.name and loop.split is not None:
                first = self.here.starts[around]
                if self.padding:
                    self.here.limits[self.padding.terms] = self.padding.limits(first, lanes.extent)
                if self.algorithm.lines:
                    self.sums.take_apart(self.algorithm.lines, first)
        for pack in self.nest.packs:
            if pack.at == around:
                self._pack(pack)
        if around and around == self.nest.collect.at and not self.is_collecting:
            self._collect(loops, around)
        elif around == self.nest.accumulate.at:
            self._accumulate(loops)
        else:
            self._loops(loops)
        blocks = self.nest.collected_blocks
        if blocks and around == blocks.name:
            self._write_block(blocks)

    def _pack(self, pack: Pack) -> None:
        array, count = self.copies.pack(pack)
        for band in self.operand_bands:
            if band.access.name != pack.operand:
                band.test_packed(array, count)

    def _accumulate(self, loops: Sequence[Loop]) -> None:
        here = self.here
        outer = dict(here.known)
        if not self.is_collecting:
            here.name_start(self.algorithm.result, "to")
        self.sums.begin()
        if not self.is_collecting or self.nest.collected_blocks:
            self._name_starts()
        self._narrow_sums(loops)
        if self.algorithm.with_subnormals is None:
            self._loops(loops)
        else:
            with self.writer.if_(self.copies.are_normal):
                self._loops(loops)
            with self.writer.else_():
                self._row_by_row(loops, self.algorithm.with_subnormals)
        self.sums.end()
        here.known = outer

    def _row_by_row(self, loops: Sequence[Loop], update: Expr) -> None:
        """The sums of one row after the other. With all rows in one loop, LLVM would take registers from the sums of
        the other branch, too: both have the sums in the same places."""
        rows = [x for x in loops if x in self.sums.results]
        self.sums.algorithm = replace(self.algorithm, update=update)
        for _ in self.here.written_out(rows):
            self._loops([x for x in loops if x not in rows])
        self.sums.algorithm = self.algorithm

    def _name_starts(self) -> None:
        """Name the parts of the unpacked operands' offsets that are the same for some sums."""
        packed = {pack.operand for pack in self.nest.packs}
        for access in self.algorithm.operands:
            if access.name not in packed:
                self.here.name_start(access, f"from_{access.name}")
                self.here.name_bases(access, self.sums.results)

    def _collect(self, loops: Sequence[Loop], around: str) -> None:
        here = self.here
        outer = dict(here.known)
        here.name_start(self.algorithm.result, "to")
        if not self.nest.collected_blocks:
            self._name_starts()
        self.is_collecting = True
        (self._accumulate if around == self.nest.accumulate.at else self._loops)(loops)
        self.is_collecting = False
        if not self.nest.collected_blocks:
            self.sums.write_collected()
        here.known = outer

    def _write_block(self, blocks: Loop) -> None:
        """Write the collected sums of a block after the last part. Not all blocks after all parts: the processor
        computes the next block while it writes this one."""
        tests: list[Expr] = []
        for loop in filter(self.nest.is_reduced, self.nest.outside(blocks.name)):
            if loop.name in self.here.numbers:
                tests.append(self.here.numbers[loop.name].eq(Name(f"{loop.name}s") - 1))
            else:
                tests.append(self.here.starts[loop.name] + loop.step >= self.here.limits_of(loop)[1])
        with self.writer.if_(all_of(tests)) if tests else nullcontext():
            self.sums.write_collected()

    def _loops(self, loops: Sequence[Loop]) -> None:
        """The next plain loop with all others inside; statements, if there is none."""
        loop = next((x for x in loops if x.kind == "serial"), None)
        if loop is None:
            self.sums.update(loops)
            return
        rest = [x for x in loops if x is not loop]
        low, high = self.narrowed.get(loop.name) or self.here.limits_of(loop)
        if loop.split is None:
            self._iterate(loop, rest, loop.name, low, high, 1)
            return
        size, start, inner = loop.split.size, loop.split.start or loop.name, loop.inner
        if isinstance(size, Name):
            with self.writer.loop(loop.name, Name(f"{loop.name}s")) as number:
                lowest = times(number, size)
                begin = self.writer.assign(start, lowest if low is ZERO else maximum(lowest, low))
                self.here.starts[loop.name], self.here.numbers[loop.name] = begin, number
                self.here.counts[inner] = self.writer.assign(loop.split.count, minimum(lowest + size, high) - begin)
                self._inside(rest, loop.name)
            del self.here.starts[loop.name]
        elif loop.split.tail == "shift":
            last = self.here.limits_of(loop)[1] - size
            with self.writer.loop(loop.name, low, high, step=size) as begin:
                self.here.starts[loop.name] = self.writer.assign(start, minimum(begin, last))
                self.here.counts[inner] = Number(size)
                self._inside(rest, loop.name)
            del self.here.starts[loop.name]
        elif loop.split.tail == "short" and low is ZERO and isinstance(high, Number) and int(high.value) <= size:
            self.here.starts[loop.name], self.here.counts[inner] = ZERO, high
            self._inside(rest, loop.name)
            del self.here.starts[loop.name]
        elif loop.split.tail == "short":
            with self.writer.loop(start, low, high, step=size) as begin:
                self.here.starts[loop.name] = begin
                self.here.counts[inner] = self.writer.assign(loop.split.count, minimum(Number(size), high - begin))
                self._inside(rest, loop.name)
            del self.here.starts[loop.name]
        else:
            first = next(x for x in self.nest.loops if x.split is not None and x.split.tail == "rest")
            name = "whole" if loop is first else f"whole_{loop.name}"
            if low is ZERO and isinstance(high, Number):
                whole: Expr = Number(int(high.value) // size * size)
            else:
                whole = self.writer.assign(name, low + (high - low) // Number(size) * Number(size))
            self.here.counts[inner] = Number(size)
            self._iterate(loop, rest, start, low, whole, size)
            if whole != high:
                self.here.counts[inner] = Number(1)
                self._iterate(loop, rest, start, whole, high, 1)

    def _iterate(self, loop: Loop, rest: Sequence[Loop], name: str, low: Expr, high: Expr, step: int) -> None:
        bounds = (high,) if low is ZERO and step == 1 else (low, high)
        with self.writer.loop(name, *bounds, step=step) as begin:
            self.here.starts[loop.name] = begin
            self._inside(rest, loop.name)
        del self.here.starts[loop.name]

    def _narrow_rows(self, around: str) -> None:
        """In an iteration of a loop over columns: go only through the rows with elements of the result's bands."""
        result = self.algorithm.result
        for band in self.nest.bands:
            rows, columns = (name for name, _ in result.strides[-2:])
            loop = self.nest[around]
            if band.array == result.name and loop.dimension == columns and loop.split is not None:
                inner = next(x for x in self.nest.inside(around) if x.dimension == rows)
                first, width = self.here.starts[around], loop.split.size
                assert isinstance(width, int), f"{around} has lanes"
                self.narrowed[inner.name] = rows_of_band(self.writer, band, self.here.limits[rows], first, width)

    def _narrow_sums(self, loops: Sequence[Loop]) -> None:
        """If the sums of an iteration are in registers: add only the terms in the operands' bands."""
        for band in self.operand_bands:
            rows, columns = (name for name, _ in band.access.strides[-2:])
            inner = next(x for x in loops if x.dimension == columns)
            count = next((self.here.trips(x) for x in loops if x.dimension == rows), Number(1))
            assert isinstance(count, Number)
            row = self.here.counter(rows)
            before, deep = self.here.counter(columns), self.here.trips(inner)
            self.narrowed[inner.name] = band.limits(row, int(count.value), before, deep)

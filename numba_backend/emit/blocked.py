"""Blocked products: large ones of integers, which no BLAS has, and shallow ones of floats, where BLAS is slower.

Columns of the result are taken in panels of a few vector registers, rows in blocks. The part of the right-hand side
that a panel needs is copied into a local array, as elements of the type in which sums are kept. Then each tile of six
rows of the left-hand side runs along it, with its sums in registers::

    for item in range(lo, hi):                                     batch x blocks of rows x strips of panels
        for column in range(left, right, 16):
            first = minimum(column, right - 16)                    the last panel may have columns of the one before
            panel[p * 16 + j] = y[p, first + j]
            for row in range(top, below, 6):
                i = minimum(row, below - 6)                        and the last tile rows
                sums0[...], ..., sums5[...] = 0
                for p in range(k):
                    factor0 = x[i, p]
                    for j in range(16):
                        sums0[j] = add(sums0[j], multiply(factor0, panel[p * 16 + j]))
                    ...
                out[i, first + j] = sums0[j]

A result is written once, where BLAS clears it first and then adds to it: with 64 products in a sum that is a sixth of
the time. If a panel does not fit into the local array, the sum is cut into parts of the panel's depth, which are added
to the result one after the other. For integers these are tiles of any size; for floats, of which only products in a
chain (`chain.py`) have so many terms, a tile begins with the sums that are there.

Where only a band of the result matters, as in attention with a mask, tiles outside of it are left out. If the left-hand
side has a band outside of which each row repeats one element, that element is looked at: where it is 0, and the panel
is finite, sums go along the band only. (0 * NaN is NaN, and has to be computed.)

Integers wrap around, so sums of 8 bits may be kept in 16, which processors multiply. The operands may have other types
than the result; nothing is converted in memory. Most products of bytes and of 16 bits are those of `packed.py`.

Source of the scheme: Goto, van de Geijn: Anatomy of high-performance matrix multiplication, TOMS 34 (2008).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from ...hlo.analyses.bands import EVERYTHING, Band
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.memory_pressure import on_pressure
from ..dot import Strides, strides_of
from ..loops.expressions import ZERO, Expr, Name, Number, call, product_of, sum_of, times
from ..loops.statements import KernelParameter, LoopProgram, PointerParameter, SizeParameter
from ..loops.typing import is_float, pointer_to
from ..loops.writer import Writer, cast
from .batch import batch_sizes, starts_in_batch
from .kernel import HI, LO, EmittedKernel, memory_type, program_of

_ROWS = 6
"""Rows of a tile: with two registers for each, and three for a row of the panel and a factor, AVX2's are full."""
_PANEL_BYTES = 64
"""Of a row of a panel: a register of AVX-512, or two of AVX2."""
_PANEL_ELEMENTS = 4096
DEPTH = 256
"""The most products in a sum for which a panel of floats is copied as a whole."""

_BLOCK = 516
"""Rows of a block: fewer take longer to copy a panel than is saved, more do not stay in a second-level cache."""
_ITEMS = 32
"""Pieces to share between threads: blocks of rows, and strips of panels if these are too few."""


class GivenBand(NamedTuple):
    """What is known of the left-hand side of a product: outside of a band its elements are equal in each row."""

    band: Band
    """Of its elements [i, p]: row of the result, number of the product in the sum."""
    by_columns: bool
    """Or in each column: it is given transposed."""


def tile_of(byte_width: int) -> tuple[int, int]:
    """The rows and columns of a tile of results with this many bytes each."""
    return _ROWS, _PANEL_BYTES // byte_width


def emit_blocked(dot: HloInstruction) -> EmittedKernel:
    """The kernel of a product. Operands and result are dense, and lie as BLAS needs them."""
    return _kernel(_types(dot), strides_of(dot))


def emit_blocked_rows(
    dot: HloInstruction, rows: int, wanted: Band = EVERYTHING, given: GivenBand | None = None
) -> EmittedKernel:
    """The kernel of a product of floats with a turn for each block of rows, in the order of the result: `rows` each,
    and the rest in the last. The result has at least the size of a tile. Of the result only the band `wanted` matters;
    `given` says what is known of the left-hand side."""
    return _kernel(_types(dot), strides_of(dot), rows, wanted, given)


Types = tuple[ElementType, ElementType, ElementType]
"""Of the operands and the result."""


def _types(dot: HloInstruction) -> Types:
    lhs, rhs = dot.operands
    return lhs.shape.element, rhs.shape.element, dot.shape.element


class _Form(NamedTuple):
    """All that the text of a kernel depends on: products of other sizes have the same."""

    types: Types
    batch: int
    """The number of its dimensions."""
    is_whole: bool
    """Tiles are never cut."""
    is_deep: bool
    """Their sums are computed in parts."""
    has_wanted: bool
    """Only a band of the result is computed."""
    by_columns: bool | None
    """Of a `GivenBand`; None: there is none."""
    ones: frozenset[str]
    """The strides that are 1 in the text."""


def _kernel(
    types: Types, strides: Strides, given_rows: int | None = None, wanted: Band = EVERYTHING,
    given: GivenBand | None = None,
) -> EmittedKernel:  # fmt: skip
    result = types[2]
    m, n, k = strides.m, strides.n, strides.k
    kind = _kind_of_sums(result)
    columns, depth = _panel_of(result)
    fits = m >= _ROWS and n >= columns
    is_whole = fits and (k <= min(depth, DEPTH) or given_rows is not None)
    is_deep = is_whole and k > min(depth, DEPTH)
    sizes = {"m": m, "n": n, "k": k, **batch_sizes(strides)}
    has_wanted = wanted != EVERYTHING and not is_deep
    bands = [("wanted", wanted, n)] if has_wanted else []
    if given is not None:
        bands.append(("dense", given.band, k))
    for name, band, most in bands:  # of infinities, the numbers that have the same elements
        sizes[f"{name}_low"], sizes[f"{name}_high"] = (int(max(-m, min(bound, most))) for bound in band)
    steps = {"a0": strides.a[0], "a1": strides.a[1], "b0": strides.b[0], "b1": strides.b[1]}
    sizes |= steps
    # A stride of 1 is written into the text only for integers: one kernel serves floats in all orders.
    converts = memory_type(types[0]) != kind
    ones = frozenset(name for name, step in steps.items() if step == 1 and converts)

    batch = math.prod(d.count for d in strides.batch)
    rows = given_rows or -(-m // (-(-m // _BLOCK) * _ROWS)) * _ROWS
    blocks = max(1, m // rows)  # the last one has the rest too, so that each has a whole tile
    panels = max(1, n // columns)
    pieces = 1 if given_rows else min(panels, -(-_ITEMS // (blocks * batch)))
    wide = -(-panels // pieces) * columns
    strips = max(1, n // wide)
    sizes |= {"block": rows, "blocks": blocks, "strip": wide, "strips": strips}

    by_columns = None if given is None else given.by_columns
    form = _Form(types, len(strides.batch), is_whole, is_deep, has_wanted, by_columns, ones)
    program, pointers, names = _text(form)
    parameters: tuple[KernelParameter, ...] = (*pointers, *[SizeParameter(name, sizes[name]) for name in names])
    cost = 0.02 * min(m, rows) * wide * k * result.byte_width / 4
    return EmittedKernel(program, parameters, blocks * strips * batch, cost)


def _kind_of_sums(result: ElementType) -> str:
    """The type of sums."""
    name = memory_type(result)
    signed = "int" if result.is_signed else "uint"
    return name if is_float(name) else f"{signed}{8 * max(result.byte_width, 2)}"


def _panel_of(result: ElementType) -> tuple[int, int]:
    """The columns of a panel, and the most rows of one."""
    columns = _PANEL_BYTES // max(result.byte_width, 2)
    return columns, _PANEL_ELEMENTS // columns


_Text = tuple[LoopProgram, tuple[PointerParameter, ...], tuple[str, ...]]
"""A program, the buffers that it has, and the names of its sizes."""


@lru_cache(maxsize=64)
def _text(form: _Form) -> _Text:
    return _Emitter(form).emit()


def _forget() -> int:
    """Forget the programs. Nobody knows how much memory that is."""
    _text.cache_clear()
    return 0


on_pressure(_forget)


class _Emitter:
    """It sees no size, only the form: so a program is right for all sizes that have its form."""

    def __init__(self, form: _Form) -> None:
        self.form, self.types = form, form.types
        self.writer = Writer()
        self.sizes: list[str] = []
        self.result = memory_type(self.types[2])
        self.kind = _kind_of_sums(self.types[2])
        """The type of sums."""
        self.columns, self.depth = _panel_of(self.types[2])
        self.is_whole, self.is_deep = form.is_whole, form.is_deep
        self.converts = memory_type(self.types[0]) != self.kind
        """The rows of a tile are copied too, as elements of that type: whole vectors are converted, not each factor."""
        self.x, self.y, self.out = (
            Name(name, pointer_to(memory_type(t))) for name, t in zip(("x0", "x1", "out"), self.types, strict=True)
        )
        self.m, self.n, self.k = map(self._size, "mnk")
        self.wanted = self._bounds("wanted") if form.has_wanted else None
        """Of the result, as (low, high)."""
        self.dense = None if form.by_columns is None else self._bounds("dense")
        """Of the left-hand side."""
        self.a_row, self.a_step = (self._stride(name) for name in ("a0", "a1"))
        self.b_step, self.b_column = (self._stride(name) for name in ("b0", "b1"))

    def _size(self, name: str) -> Expr:
        self.sizes.append(name)
        return Name(name)

    def _bounds(self, name: str) -> tuple[Expr, Expr]:
        return self._size(f"{name}_low"), self._size(f"{name}_high")

    def _stride(self, name: str) -> Expr:
        return Number(1) if name in self.form.ones else self._size(name)

    def emit(self) -> _Text:
        writer, columns = self.writer, self.columns
        block, block_count = self._size("block"), self._size("blocks")
        strip, strip_count = self._size("strip"), self._size("strips")
        deepest = min(self.depth, DEPTH) if self.is_whole else self.depth
        self.panel = writer.local_array("panel", deepest * columns, self.kind)
        self.sums = [writer.local_array(f"sums{r}", columns, self.kind) for r in range(_ROWS)]
        if self.converts:
            self.rows = writer.local_array("rows", _ROWS * self.depth, self.kind)
        with writer.loop("item", LO, HI) as item:
            above = writer.assign("above", item // strip_count)
            number = writer.assign("number", item - times(above, strip_count))
            left = writer.assign("left", times(number, strip))
            right = writer.assign("right", left + strip)
            with writer.if_(number.eq(strip_count - 1)):
                writer.assign(right, self.n)
            rest = writer.assign("rest", above // block_count)
            part = writer.assign("part", above - times(rest, block_count))
            self.top = writer.assign("top", times(part, block))
            self.below = writer.assign("below", self.top + block)
            with writer.if_(part.eq(block_count - 1)):
                writer.assign(self.below, self.m)
            self.at_a, self.at_b, self.at_c = starts_in_batch(writer, self.form.batch, self._size, rest)
            self._test_outside()
            with writer.loop("column", left, right, step=columns) as column:
                if self.is_whole:
                    self.first = writer.assign("first", call("minimum", column, right - columns))
                    if self.is_deep:
                        self._deep()
                    else:
                        self._whole()
                else:
                    self.first = column
                    self.wide = writer.assign("wide", call("minimum", Number(columns), self.n - column))
                    self._parts()
        pointers = (
            PointerParameter("x0", self.types[0], 0, None), PointerParameter("x1", self.types[1], 1, None),
            PointerParameter("out", self.types[2], None, 0),
        )  # fmt: skip
        name = ("deep_product" if self.is_deep else "shallow_product") if self.is_whole else "blocked_product"
        sizes = [SizeParameter(name, 0) for name in self.sizes]  # their values are each product's own
        return program_of(name, (*pointers, *sizes), writer), pointers, tuple(self.sizes)

    def _whole(self) -> None:
        """A panel of the result whose sums are computed at once."""
        writer = self.writer
        top, below = self.top, self.below
        if self.wanted is not None:
            low, high = self.wanted
            top = writer.assign("begin", call("maximum", top, self.first - high))
            below = writer.assign("end", call("minimum", below, self.first + self.columns - low))
        self._pack(ZERO, self.k)
        with writer.loop("row", top, below, step=_ROWS) as row:
            i = writer.assign("i", call("minimum", row, self.below - _ROWS))
            self._tile(i, _ROWS, ZERO, self.k)

    def _test_outside(self) -> None:
        """Whether products with what is outside of the left-hand side's band have to be computed: not if it is 0. A
        row's elements there are equal, so one of them says what all are::

            outside = 0
            for i in range(top, minimum(below, k - 1 - dense_high)):
                if x0[i * a0 + (k - 1) * a1] != 0:
                    outside = 1
            for i in range(maximum(top, 1 - dense_low), below):
                if x0[i * a0] != 0:
                    outside = 1
        """
        if self.dense is None:
            return
        writer, (low, high) = self.writer, self.dense
        self.outside = writer.assign("outside", 0)
        start: Expr = self.top
        stop: Expr = self.below
        if self.form.by_columns:
            start, stop, last = ZERO, self.k, self.m - 1
            low, high = -high, -low
        else:
            last = self.k - 1
        at_last = (last, start, call("minimum", stop, last - high))
        at_first = (ZERO, call("maximum", start, 1 - low), stop)
        for column, first, end in (at_last, at_first):
            with writer.loop("i", first, end) as i:
                row, p = (column, i) if self.form.by_columns else (i, column)
                value = self.x[self.at_a + times(row, self.a_row) + times(p, self.a_step)]
                with writer.if_(value.ne(cast(self.result, 0))):
                    writer.assign(self.outside, 1)

    def _test_panel(self, deep: Expr) -> None:
        """Products with what is outside of the band are 0 if the panel has neither infinities nor NaN."""
        if self.dense is None:
            return
        writer = self.writer
        self.skips = writer.assign("skips", 1 - self.outside)
        zeros = writer.assign("zeros", cast(self.kind, 0))
        with writer.loop("p", times(deep, Number(self.columns))) as p:
            writer.assign(zeros, call("reduce_add", zeros, self.panel[p] * cast(self.kind, 0)))
        with writer.if_(zeros.ne(cast(self.kind, 0))):
            writer.assign(self.skips, 0)

    def _factors(self, i: Name, rows: int, k0: Expr, deep: Expr) -> tuple[Expr, ...]:
        """From where to where the sums of a tile go: in a band if they can."""
        if self.dense is None:
            return (deep,)
        writer, (low, high) = self.writer, self.dense
        begin, end = writer.assign("begin_p", 0), writer.assign("end_p", deep)
        with writer.if_(self.skips.eq(1)):
            writer.assign(begin, call("maximum", ZERO, i + low - k0))
            writer.assign(end, call("minimum", deep, i + (rows + high) - k0))
        return begin, end

    def _deep(self) -> None:
        """A panel of the result, to which parts of the sums are added. No row may be in two tiles of a part."""
        writer = self.writer
        with writer.loop("k0", 0, self.k, step=DEPTH) as k0:
            deep = writer.assign("deep", call("minimum", Number(DEPTH), self.k - k0))
            self._pack(k0, deep)
            whole = writer.assign("whole", self.top + (self.below - self.top) // Number(_ROWS) * Number(_ROWS))
            with writer.loop("i", self.top, whole, step=_ROWS) as i:
                self._tile(i, _ROWS, k0, deep)
            with writer.loop("i", whole, self.below) as i:
                self._tile(i, 1, k0, deep)

    def _parts(self) -> None:
        """A panel of the result whose sums are computed part by part."""
        writer = self.writer
        with writer.loop("i", self.top, self.below) as i:
            to = writer.assign("to", self.at_c + times(i, self.n) + self.first)
            with writer.loop("j", self.wide) as j:
                writer.store(self.out, to + j, cast(self.result, 0))
        with writer.loop("k0", 0, self.k, step=self.depth) as k0:
            deep = writer.assign("deep", call("minimum", Number(self.depth), self.k - k0))
            self._pack(k0, deep)
            whole = writer.assign("whole", self.top + (self.below - self.top) // Number(_ROWS) * Number(_ROWS))
            with writer.loop("i", self.top, whole, step=_ROWS) as i:
                self._tile(i, _ROWS, k0, deep)
            with writer.loop("i", whole, self.below) as i:
                self._tile(i, 1, k0, deep)

    def _summand(self, value: Expr) -> Expr:
        return value if value.type == self.kind else cast(self.kind, value)

    def _pack(self, k0: Expr, deep: Expr) -> None:
        """The panel's part of the rhs; columns that the result does not have are 0."""
        writer, width = self.writer, self.columns
        at = writer.assign("from_b", self.at_b + times(k0, self.b_step) + times(self.first, self.b_column))

        def element(p: Name, j: Name) -> Expr:
            return self._summand(self.y[at + times(p, self.b_step) + times(j, self.b_column)])

        if self.is_whole:
            with writer.if_(self.b_column.eq(1)), writer.loop("p", deep) as p, writer.loop("j", width) as j:
                value = self.y[at + times(p, self.b_step) + j]
                writer.store(self.panel, times(p, Number(width)) + j, self._summand(value))
            with writer.else_(), writer.loop("j", width) as j, writer.loop("p", deep) as p:
                writer.store(self.panel, times(p, Number(width)) + j, element(p, j))
            self._test_panel(deep)
        else:
            with writer.loop("p", deep) as p:
                with writer.loop("j", self.wide) as j:
                    writer.store(self.panel, times(p, Number(width)) + j, element(p, j))
                with writer.loop("j", self.wide, width) as j:
                    writer.store(self.panel, times(p, Number(width)) + j, cast(self.kind, 0))

    def _tile(self, i: Name, rows: int, k0: Expr, deep: Expr) -> None:
        writer, width, sums = self.writer, self.columns, self.sums[:rows]
        to = writer.assign("to", self.at_c + times(i, self.n) + self.first)
        if self.is_deep:
            with writer.if_(k0.eq(0)), writer.loop("j", width) as j:
                for total in sums:
                    writer.store(total, j, cast(self.kind, 0))
            with writer.else_():
                for r, total in enumerate(sums):
                    with writer.loop("j", width) as j:
                        writer.store(total, j, self.out[to + times(Number(r), self.n) + j])
        else:
            with writer.loop("j", width) as j:
                for total in sums:
                    writer.store(total, j, cast(self.kind, 0))
        at = writer.assign("from_a", self.at_a + times(i, self.a_row) + times(k0, self.a_step))

        def element(r: int, p: Name) -> Expr:
            return self.x[at + times(p, self.a_step) + times(Number(r), self.a_row)]

        if self.converts:
            for r in range(rows):
                with writer.loop("p", deep) as p:
                    writer.store(self.rows, p + r * self.depth, cast(self.kind, element(r, p)))
        with writer.loop("p", *self._factors(i, rows, k0, deep)) as p:
            factors = [
                writer.assign(f"factor{r}", self.rows[p + r * self.depth] if self.converts else element(r, p))
                for r in range(rows)
            ]
            for total, factor in zip(sums, factors, strict=True):
                with writer.loop("j", width) as j:
                    term = product_of(factor, self.panel[times(p, Number(width)) + j])
                    writer.store(total, j, sum_of(total[j], term))
        wide: Expr = Number(width) if self.is_whole else self.wide
        for r, total in enumerate(sums):
            with writer.loop("j", wide) as j:
                place = to + times(Number(r), self.n) + j
                value: Expr = total[j] if self.kind == self.result else cast(self.result, total[j])
                writer.store(self.out, place, value if self.is_whole else sum_of(self.out[place], value))

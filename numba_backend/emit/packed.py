"""Products of matrices of small numbers: several of them in a word, as processors multiply them, with sums of 32 bits.

    s8, u8                    four in a word, dot_bytes; sums wrap around
    s16, or s8, u8 with it    two in a word, dot_shorts
    bf16                      two in a word where the processor multiplies these, dot_bf16_normal
    f16, bf16                 converted to f32 otherwise

The sums of a strip of columns and a block of rows are in a local array. For each part of the depth, the strip's part of
the right-hand side is copied, word by word, panel by panel. So are some rows of the left-hand side; the tile of these
rows and a panel's columns is multiplied in registers::

    for item in range(lo, hi):                                     batch x blocks of rows x strips of columns
        for k0 in range(0, k, 1024):
            panels[... p * 32 + j] = y[k0 + 4 * p, first + j] | y[k0 + 4 * p + 1, first + j] << 8 | ...
            for i in range(top, below, 8):
                rows[r * 256 + p] = x[i + r, k0 + 4 * p] | ...
                for first in range(left, right, 32):
                    sums0_0[...], sums0_1[...], ..., sums7_1[...] = totals[...]
                    for p in range(words):
                        factor0 = rows[p]
                        sums0_0[j] = dot_bytes(sums0_0[j], factor0, panels[... + p * 32 + j])
                        ...
                    totals[...] = sums0_0[j], ...
        out[i, first + j] = totals[...]

Processors multiply unsigned bytes by signed ones. If both operands are signed or both are not, the upper bit of each
byte of the left-hand side is flipped, which adds 128 to it, or takes 128 from it; the products of the same 128 with the
panel's numbers are taken from the sums.

The instruction for bf16 takes subnormal numbers for zeros. There are none, and no product or sum is one, if no number
but zero is less than 2**-56: all products, and so all sums, are multiples of 2**-126. While words are copied, the
smallest number is found; where it is less, the tile is computed by other instructions.

A result is rounded once, from f32, wherever the depth is cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ..dot import Strides, strides_of
from ..loops.expressions import ZERO, Expr, Name, Number, as_expr, call, times
from ..loops.statements import KernelParameter, PointerParameter, SizeParameter
from ..loops.typing import is_float, pointer_to
from ..loops.writer import Writer, cast
from ..machine import Machine
from .batch import batch_sizes, starts_in_batch
from .kernel import HI, LO, EmittedKernel, memory_type, program_of

_LANES = 16
"""Words of a row: 64 bytes, one register of AVX-512."""
_WORDS = 256
"""Words of a part of the depth."""
_STRIP = 64
"""The most columns of a strip: their part of the depth stays in a second-level cache."""
_BLOCK = 256
"""The most rows of a block."""
_ITEMS = 32
"""Pieces to share between threads, if they have some rows each."""
_LEAST_ROWS = 48
_SMALLEST = (127 - 56) << 7
"""2**-56 as bf16."""

MOST_DEPTH_OF_LONG = 1 << 16
"""A sum of so many products of two bytes has 32 bits."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the elements of the operands become words."""

    function: str
    per_word: int
    word: str
    total: str
    panel_is_unsigned: bool = False
    """The panel's word is the function's first one."""
    flips: bool = False
    """The upper bit of each of the left-hand side's bytes is flipped."""


_BYTES = frozenset((ElementType.S8, ElementType.U8))
_SHORTS = _BYTES | {ElementType.S16}
_HALVES = frozenset((ElementType.BF16, ElementType.F16))


def format_of(dot: HloInstruction, multiplies_bf16: bool) -> Format | None:
    """The format in which a product is computed, or None if there is none. `multiplies_bf16`: the processor does."""
    lhs, rhs = (o.shape.element for o in dot.operands)
    result = dot.shape.element
    if {lhs, rhs} <= _HALVES and (result in _HALVES or result is ElementType.F32):
        if lhs is rhs is ElementType.BF16 and multiplies_bf16:
            return Format("dot_bf16_normal", 2, "uint32", "float32")
        return Format("dot_f32", 1, "float32", "float32")
    if not result.is_integral or result.is_small or result is ElementType.PRED:
        return None
    if {lhs, rhs} <= _BYTES:
        if result.byte_width > 4 and _depth(dot) > MOST_DEPTH_OF_LONG:
            return None
        unsigned = rhs is ElementType.U8
        return Format("dot_bytes", 4, "uint32", "uint32", unsigned, lhs is rhs)
    if {lhs, rhs} <= _SHORTS and result.byte_width <= 4:
        return Format("dot_shorts", 2, "uint32", "uint32")
    return None


def _depth(dot: HloInstruction) -> int:
    return math.prod(dot.operands[0].shape.dimensions[d] for d in dot.attributes.lhs_contracting_dims)


def _tile(machine: Machine) -> tuple[int, int]:
    """The rows of a tile, and how many times 16 columns it has: its sums fill half of the registers or more."""
    number, nbytes = machine.registers, machine.register_bytes
    return (6, 1) if number < 32 or nbytes < 32 else (8, nbytes // 32)


def emit_packed(dot: HloInstruction, form: Format, machine: Machine) -> EmittedKernel:
    """The kernel of a product. Operands and result are dense, and BLAS could take them."""
    return _Emitter(dot, form, strides_of(dot), machine).emit()


class _Emitter:
    def __init__(self, dot: HloInstruction, form: Format, strides: Strides, machine: Machine) -> None:
        self.form, self.strides = form, strides
        self.types = [i.shape.element for i in (*dot.operands, dot)]
        self.writer = Writer()
        self.sizes: list[SizeParameter] = []
        self.rows, self.parts = _tile(machine)
        self.width = self.parts * _LANES
        self.x, self.y, self.out = (
            Name(name, pointer_to(memory_type(t))) for name, t in zip(("x0", "x1", "out"), self.types, strict=True)
        )
        named = ((strides.m, "m"), (strides.n, "n"), (strides.k, "k"))
        self.m, self.n, self.k = (self._size(value, name) for value, name in named)
        self.a_row, self.a_step = (self._stride(s, f"a{number}") for number, s in enumerate(strides.a))
        self.b_step, self.b_column = (self._stride(s, f"b{number}") for number, s in enumerate(strides.b))
        self.turned = strides.a[1] != 1
        """The left-hand side is stored column by column."""
        self.looks = form.function == "dot_bf16_normal"
        """Subnormal numbers are looked for."""

    def _size(self, value: int, name: str) -> Expr:
        self.sizes.append(SizeParameter(name, value))
        return Name(name)

    def _stride(self, value: int, name: str) -> Expr:
        return Number(1) if value == 1 else self._size(value, name)

    def emit(self) -> EmittedKernel:
        strides, writer, form = self.strides, self.writer, self.form
        batch = math.prod(d.count for d in strides.batch)
        strips = -(-strides.n // _STRIP)
        most = max(_LEAST_ROWS, min(_BLOCK, strides.m * strips * batch // _ITEMS)) // self.rows * self.rows
        rows = -(-strides.m // (-(-strides.m // most) * self.rows)) * self.rows
        blocks = -(-strides.m // rows)
        block, block_count = self._size(rows, "block"), self._size(blocks, "blocks")
        strip_count = self._size(strips, "strips")
        self.panels = writer.local_array("panels", _STRIP * _WORDS, form.word)
        self.words = writer.local_array("rows", self.rows * _WORDS, form.word)
        self.totals = writer.local_array("totals", _STRIP * _BLOCK, form.total)
        self.sums = [
            [writer.local_array(f"sums{r}_{h}", _LANES, form.total) for h in range(self.parts)]
            for r in range(self.rows)
        ]
        if form.flips:
            self.extra = writer.local_array("extra", _STRIP, form.total)
        with writer.loop("item", LO, HI) as item:
            above = writer.assign("above", item // strip_count)
            self.left = writer.assign("left", times(item - times(above, strip_count), Number(_STRIP)))
            self.right = writer.assign("right", call("minimum", self.n, self.left + _STRIP))
            rest = writer.assign("rest", above // block_count)
            self.top = writer.assign("top", times(above - times(rest, block_count), block))
            self.below = writer.assign("below", call("minimum", self.m, self.top + block))
            of_batch = batch_sizes(strides)
            self.at_a, self.at_b, self.at_c = starts_in_batch(
                writer, len(strides.batch), lambda name: self._size(of_batch[name], name), rest
            )
            if self.looks:
                self.least = writer.assign("least", cast("uint32", 0xFFFFFFFF))
            with writer.loop("k0", 0, self.k, step=_WORDS * form.per_word) as k0:
                self._part(k0)
            with writer.loop("i", self.top, self.below) as i:
                start = writer.assign("start", times(i - self.top, Number(_STRIP)))
                to = writer.assign("to", self.at_c + times(i, self.n) + self.left)
                with writer.loop("j", self.right - self.left) as j:
                    writer.store(self.out, to + j, self._result(self.totals[start + j]))
        parameters: tuple[KernelParameter, ...] = (
            PointerParameter("x0", self.types[0], 0, None), PointerParameter("x1", self.types[1], 1, None),
            PointerParameter("out", self.types[2], None, 0), *self.sizes,
        )  # fmt: skip
        cost = 0.02 * rows * min(_STRIP, strides.n) * strides.k / form.per_word
        program = program_of("packed_product", parameters, writer)
        return EmittedKernel(program, parameters, blocks * strips * batch, cost)

    def _result(self, total: Expr) -> Expr:
        element = self.types[2]
        if is_float(self.form.total):
            return total if element is ElementType.F32 else call(f"f32_to_{element.value}", total)
        kind = memory_type(element)
        return cast(kind, cast("int32", total)) if element.byte_width > 4 else cast(kind, total)

    def _part(self, k0: Name) -> None:
        writer, per = self.writer, self.form.per_word
        self.deep = writer.assign("deep", call("minimum", Number(_WORDS * per), self.k - k0))
        self.whole = writer.assign("whole", self.deep // per) if per > 1 else self.deep
        self.count = writer.assign("words", (self.deep + (per - 1)) // per) if per > 1 else self.deep
        from_b = self.at_b + times(k0, self.b_step) + times(self.left, self.b_column)
        self.from_b = writer.assign("from_b", from_b)
        with writer.loop("q", 0, self.right - self.left, step=self.width) as q:
            self._pack_panel(q)
        with writer.loop("i", self.top, self.below, step=self.rows) as i:
            self._pack_rows(i, k0)
            with writer.loop("q", 0, self.right - self.left, step=self.width) as q:
                at = writer.assign("at", times(q, Number(_WORDS)))
                to = writer.assign("to", times(i - self.top, Number(_STRIP)) + q)
                if self.looks:
                    with writer.if_(call("ge", self.least, cast("uint32", _SMALLEST - 1)).ne(0)):
                        self._tile(self.form.function, self.sums, ZERO, k0, q, to, at)
                    with writer.else_(), writer.loop("r", self.rows) as r:
                        self._tile("dot_bf16", self.sums[:1], r, k0, q, to, at)
                else:
                    self._tile(self.form.function, self.sums, ZERO, k0, q, to, at)

    # Words

    def _word(self, pointer: Name, places: list[Expr], flips: bool = False) -> Expr:
        """The word of some elements."""
        form = self.form
        if form.per_word == 1:
            element = self.types[0 if pointer is self.x else 1]
            return call(f"{element.value}_to_f32", pointer[places[0]])
        bits = 32 // form.per_word
        word: Expr | None = None
        for number, place in enumerate(places):
            value = cast("uint32", cast(f"uint{bits}", pointer[place]))
            shifted = call("shl", value, cast("uint32", number * bits)) if number else value
            word = shifted if word is None else call("bit_or", word, shifted)
        assert word is not None
        return call("bit_xor", word, cast("uint32", 0x80808080)) if flips else word

    def _edge_word(self, pointer: Name, at: Expr, step: Expr, flips: bool = False) -> Expr:
        """The word of the last elements of a part; those that are missing are 0."""
        bits = 32 // self.form.per_word
        word: Expr | None = None
        for number in range(self.form.per_word - 1):
            p = self.whole * self.form.per_word + number
            place = at + times(call("minimum", p, self.deep - 1), step)
            value: Expr = cast("uint32", cast(f"uint{bits}", pointer[place]))
            if flips:
                value = call("bit_xor", value, cast("uint32", 128))
            shifted = call("shl", value, cast("uint32", number * bits)) if number else value
            there = call("select", p < self.deep, shifted, cast("uint32", 0))
            word = there if word is None else call("bit_or", word, there)
        assert word is not None
        return word

    def _look(self, words: Name, start: Expr, count: Expr) -> None:
        """Keeps the least of all numbers: without sign, as bits, and less 1, so that 0 is the greatest."""
        writer = self.writer
        if not self.looks:
            return
        one, mask = cast("uint32", 1), cast("uint32", 0x7FFF)
        with writer.loop("w", count) as w:
            word = writer.assign("word", words[start + w])
            for half in (word, call("shr_logical", word, cast("uint32", 16))):
                size = call("subtract", call("bit_and", half, mask), one)
                writer.assign(self.least, call("minimum", self.least, size))

    def _pack_panel(self, q: Name) -> None:
        writer, width, per = self.writer, self.width, self.form.per_word
        at = writer.assign("at", times(q, Number(_WORDS)))
        first = writer.assign("first", self.from_b + times(q, self.b_column))
        wide = writer.assign("wide", call("minimum", Number(width), self.right - self.left - q))

        def pack(p: Expr, j: Name) -> None:
            places = [first + times(p * per + e, self.b_step) + times(j, self.b_column) for e in range(per)]
            writer.store(self.panels, at + times(p, Number(width)) + j, self._word(self.y, places))

        if self.strides.b[1] == 1:
            with writer.if_(wide.eq(width)), writer.loop("p", self.whole) as p, writer.loop("j", width) as j:
                pack(p, j)
            with writer.else_(), writer.loop("p", self.whole) as p, writer.loop("j", wide) as j:
                pack(p, j)
        else:
            with writer.loop("j", wide) as j, writer.loop("p", self.whole) as p:
                pack(p, j)
        if per > 1:
            with writer.if_(self.whole < self.count), writer.loop("j", wide) as j:
                word = self._edge_word(self.y, first + times(j, self.b_column), self.b_step)
                writer.store(self.panels, at + times(self.whole, Number(width)) + j, word)
        with writer.if_(wide < width), writer.loop("p", self.count) as p, writer.loop("j", wide, width) as j:
            writer.store(self.panels, at + times(p, Number(width)) + j, cast(self.form.word, 0))
        self._look(self.panels, at, times(self.count, Number(width)))
        if self.form.flips:
            self._extra(q, at)

    def _extra(self, q: Name, at: Name) -> None:
        """The correction of each column's sums for flipped bits of the left-hand side."""
        writer, sums = self.writer, self.sums[0]
        self._zero(sums)
        with writer.loop("p", self.count) as p:
            factor = writer.assign("factor", cast("uint32", 0x80808080))
            self._add("dot_bytes", sums, factor, at, p)
        for h, total in enumerate(sums):
            with writer.lanes("j", _LANES) as j:
                writer.store(self.extra, q + h * _LANES + j, total[j])

    def _pack_rows(self, i: Name, k0: Name) -> None:
        """Rows of a tile; those after the last one of the block are that one again."""
        writer, per = self.writer, self.form.per_word
        from_a = writer.assign("from_a", self.at_a + times(k0, self.a_step))

        def pack(start: Expr, p: Expr, r: Expr) -> None:
            places = [start + times(p * per + e, self.a_step) for e in range(per)]
            writer.store(self.words, self._factor(p, r), self._word(self.x, places, self.form.flips))

        def start_of(r: Expr) -> Name:
            return writer.assign("start", from_a + times(call("minimum", i + r, self.below - 1), self.a_row))

        if self.turned:
            first = writer.assign("first", from_a + i)
            full = i + self.rows <= self.below
            with writer.if_(full), writer.loop("p", self.whole) as p, writer.loop("r", self.rows) as r:
                pack(first + r, p, r)
            with writer.else_(), writer.loop("r", self.rows) as r:
                start = start_of(r)
                with writer.loop("p", self.whole) as p:
                    pack(start, p, r)
        else:
            with writer.loop("r", self.rows) as r:
                start = start_of(r)
                with writer.loop("p", self.whole) as p:
                    pack(start, p, r)
        if per > 1:
            with writer.if_(self.whole < self.count), writer.loop("r", self.rows) as r:
                start = start_of(r)
                word = self._edge_word(self.x, start, self.a_step, self.form.flips)
                writer.store(self.words, self._factor(self.whole, r), word)
        if self.turned:
            self._look(self.words, ZERO, self.count * self.rows)
        else:
            with writer.loop("r", self.rows) as r:
                self._look(self.words, times(r, Number(_WORDS)), self.count)

    def _factor(self, p: Expr, r: Expr | int) -> Expr:
        """The place of a word of row `r` of a tile. If the rows of an operand are interleaved in memory, the tile's are
        too."""
        return p * self.rows + r if self.turned else p + times(as_expr(r), Number(_WORDS))

    # Sums

    def _zero(self, sums: list[Name]) -> None:
        for total in sums:
            with self.writer.lanes("j", _LANES) as j:
                self.writer.store(total, j, cast(self.form.total, 0))

    def _tile(
        self, function: str, tile: list[list[Name]], first: Expr, k0: Name, q: Name, to: Name, at: Name
    ) -> None:
        """Adds the products of a part of the depth to some sums, from row `first` of the tile on."""
        writer = self.writer
        begin = writer.assign("begin", to + times(first, Number(_STRIP)))
        with writer.if_(k0.eq(0)):
            for sums in tile:
                self._zero(sums)
        with writer.else_():
            for r, h, total in _numbered(tile):
                with writer.lanes("j", _LANES) as j:
                    writer.store(total, j, self.totals[begin + (r * _STRIP + h * _LANES) + j])
        if self.form.flips:
            for _, h, total in _numbered(tile):
                with writer.lanes("j", _LANES) as j:
                    writer.store(total, j, call("subtract", total[j], self.extra[q + h * _LANES + j]))
        with writer.loop("p", self.count) as p:
            for r, sums in enumerate(tile):
                factor = writer.assign(f"factor{r}", self.words[self._factor(p, first + r)])
                self._add(function, sums, factor, at, p)
        for r, h, total in _numbered(tile):
            with writer.lanes("j", _LANES) as j:
                writer.store(self.totals, begin + (r * _STRIP + h * _LANES) + j, total[j])

    def _add(self, function: str, sums: list[Name], factor: Name, at: Name, p: Name) -> None:
        for h, total in enumerate(sums):
            with self.writer.lanes("j", _LANES) as j:
                other = self.panels[at + times(p, Number(self.width)) + h * _LANES + j]
                words = (other, factor) if self.form.panel_is_unsigned else (factor, other)
                self.writer.store(total, j, call(function, total[j], *words))


def _numbered(tile: list[list[Name]]) -> Iterator[tuple[int, int, Name]]:
    """Row, part of it, and sums."""
    for r, sums in enumerate(tile):
        for h, total in enumerate(sums):
            yield r, h, total

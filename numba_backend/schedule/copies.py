"""The step `Pack`: copies of the elements of an operand that are read inside a loop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from ..loops.expressions import ONE, ZERO, Expr, Name, Number, call, minimum, times
from ..loops.writer import cast
from .algorithm import FLIPPED, Access, Word
from .nest import Loop
from .offsets import OpenLoops, scaled
from .steps import Pack

SMALLEST = (127 - 56) << 7
"""2**-56 as bf16."""
SIGNS = 0x8000_8000
"""The signs of the two numbers of bf16 in a word. Sums of numbers without signs stay within their halves."""


def small_numbers(word: Expr) -> Expr:
    """A word whose bits at `SIGNS` say which of its two numbers of bf16 is smaller than `SMALLEST`, but not zero."""
    sizes = cast("uint32", SIGNS ^ 0xFFFF_FFFF)
    size = call("bit_and", word, sizes)
    is_large = call("add", size, cast("uint32", SIGNS - SMALLEST * 0x1_0001))
    return call("bit_and", call("add", size, sizes), call("bit_not", is_large))


class Copies:
    """The arrays into which operands are packed."""

    def __init__(self, here: OpenLoops) -> None:
        self.here, self.nest, self.algorithm = here, here.nest, here.algorithm
        self.writer = here.writer
        self.arrays: dict[str, Name] = {}
        for pack in self.nest.packs:
            count = math.prod(most for _, most in pack.layout)
            word = self.algorithm.operand(pack.operand).word
            kind = word.type if word else self.algorithm.total_type
            self.arrays[pack.into] = self.writer.local_array(pack.into, count, kind)
        self.packed: dict[str, tuple[Name, Pack]] = {}
        """The packed elements, by operand."""
        self.corrections: dict[str, Name] = {
            pack.into: self.writer.local_array(
                f"{pack.into}_flipped", math.prod(most for _, most in self._free(pack)), self.algorithm.total_type
            )
            for pack in self.nest.packs
            if any(a.word and a.word.flips for a in self.algorithm.operands if a.name != pack.operand)
        }
        """The sums of the other operand's flipped bits times packed elements."""

    def begin(self) -> None:
        """Begin the work of a thread: nothing is packed yet."""
        if self.algorithm.with_subnormals is not None:
            self.small: Name = self.writer.assign("small", cast("uint32", 0))

    @property
    def are_normal(self) -> Expr:
        """Tests whether no product of what has been packed is subnormal."""
        return call("bit_and", self.small, cast("uint32", SIGNS)).eq(0)

    def correction(self) -> Expr:
        """The term that is to be taken from a sum."""
        pack = next(pack for _, pack in self.packed.values() if pack.into in self.corrections)
        return self.corrections[pack.into][self._place(self._free(pack))]

    def _free(self, pack: Pack) -> tuple[tuple[str, int], ...]:
        """The loops of a copy that are none of a sum."""
        return tuple((name, most) for name, most in pack.layout if not self.nest.is_reduced(self.nest[name]))

    def element(self, access: Access) -> Expr:
        """An operand's element, in the type of sums."""
        copy = self.packed.get(access.name)
        if copy is None:
            return self.algorithm.packed(access, self.here.offset(access))
        array, pack = copy
        return array[self._place(pack.layout)]

    def _place(self, layout: Sequence[tuple[str, int]]) -> Expr:
        """The offset of an element in a copy."""
        steps: dict[str, int] = {}
        step = 1
        for name, most in reversed(layout):
            steps[name], step = step, step * most
        total: Expr = ZERO
        for loop in self.nest.loops:
            if loop.name in steps:
                total = total + scaled(self.here.starts[loop.name], Number(steps[loop.name] // loop.step))
        return total

    def pack(self, pack: Pack) -> tuple[Name, Expr]:
        """Copies, and gives the array and how many elements it has. Along memory: the layout's last loop is the
        innermost one if it goes from neighbour to neighbour, and the outermost one otherwise. ::

            if b1 == 1:                                          else:
                for p in range(k):                                   for j in range(16):
                    for j in range(16):                                  for p in range(k):
                        panel[p * 16 + j] = x1[from_b + p * b0 + j]          panel[...] = x1[from_b + ... + j * b1]
        """
        access = self.algorithm.operand(pack.operand)
        outer = dict(self.here.known)
        self.packed.pop(access.name, None)
        self.here.name_start(access, f"from_{access.name}")
        array = self.arrays[pack.into]
        loops = [self.nest[name] for name, _ in pack.layout]
        counts = [self.here.trips(loop) for loop in loops]
        if access.word and access.word.count > 1:
            self._copy_words(pack, access, access.word, loops, counts)
        else:
            self._copy(pack, access, loops, counts)
        if self.nest.lanes in loops:
            self._fill(pack, array, loops, counts)
        self.here.known = outer
        self.packed[access.name] = array, pack
        filled = [Number(x.extent) if x is self.nest.lanes else n for x, n in zip(loops, counts, strict=True)]
        if pack.into in self.corrections:
            self._correct(pack, loops, filled)
        return array, functools.reduce(times, counts)

    def _copy(self, pack: Pack, access: Access, loops: Sequence[Loop], counts: Sequence[Expr]) -> None:
        last, word = loops[-1].dimension, access.word
        stride = word.step if word and word.dimension == last else access.stride(last)
        transposed = (*loops[-1:], *loops[:-1]), (*counts[-1:], *counts[:-1])
        if isinstance(stride, Number) or word or access.table(last):
            self._each(pack, access, *((loops, counts) if stride == ONE else transposed))
        else:
            with self.writer.if_(stride.eq(1)):
                self._each(pack, access.with_neighbours(last), loops, counts)
            side = self._side(access, loops, counts)
            if side:
                with self.writer.elif_(access.stride(loops[0].dimension).eq(1)):
                    self._turn(pack, access.with_neighbours(loops[0].dimension), loops, counts[0], side)
            with self.writer.else_():
                self._each(pack, access, *transposed)

    def _side(self, access: Access, loops: Sequence[Loop], counts: Sequence[Expr]) -> int:
        """The sides of square blocks that a copy of whole rows of lanes consists of; 0 if it has none."""
        if access.pointer.type[:-1] != self.algorithm.total_type or len(loops) != 2 or loops[1] is not self.nest.lanes:
            return 0
        first, extent = access.stride(loops[0].dimension), loops[1].extent
        if access.table(loops[0].dimension) or isinstance(first, Number) or counts[1] != Number(extent):
            return 0
        return next((side for side in (16, 8) if extent % side == 0), 0)

    def _turn(self, pack: Pack, access: Access, loops: Sequence[Loop], count: Expr, side: int) -> None:
        """Copy columns that are contiguous in memory into rows, by square blocks, and what is left over one by one. ::

            turned = k // 16 * 16
            for p_block in range(0, turned, 16):
                for j_block in range(0, 32, 16):
                    for lane in lanes(16):
                        for term in range(16):
                            panel[(p_block + term) * 32 + (j_block + lane)] = x1[... + (p_block + term) + ... * b1]
        """
        writer, starts = self.writer, self.here.starts
        (terms, lanes), array = loops, self.arrays[pack.into]

        def copy() -> None:
            value = self.algorithm.packed(access, self.here.offset(access))
            writer.store(array, self._place(pack.layout), value)

        turned = writer.assign("turned", count // side * side)
        with (
            writer.loop(f"{terms.name}_block", 0, turned, step=side) as at,
            writer.loop(f"{lanes.name}_block", 0, lanes.extent, step=side) as along,
            writer.lanes("lane", side) as lane,
            writer.loop("term", side) as term,
        ):
            starts[terms.name], starts[lanes.name] = at + term, along + lane
            copy()
        with writer.loop(lanes.name, lanes.extent) as lane, writer.loop(terms.name, turned, count) as term:
            starts[terms.name], starts[lanes.name] = term, lane
            copy()
        del starts[terms.name], starts[lanes.name]

    def _each(
        self, pack: Pack, access: Access, order: Sequence[Loop], counts: Sequence[Expr], some: Expr | None = None
    ) -> None:
        """Copy all elements. `some`: words have so many elements each."""

        def copy() -> None:
            value = self.algorithm.packed(access, self.here.offset(access), some)
            if self.algorithm.with_subnormals is not None:
                value = self.writer.assign("word", value)
                self.writer.assign(self.small, call("bit_or", self.small, small_numbers(value)))
            self.writer.store(self.arrays[pack.into], self._place(pack.layout), value)

        self.here.each(order, counts, copy)

    def _copy_words(
        self, pack: Pack, access: Access, word: Word, loops: Sequence[Loop], counts: Sequence[Expr]
    ) -> None:
        """Copy whole words, and the last one with the elements that it has."""
        writer, loop = self.writer, next(x for x in loops if x.dimension == word.dimension)
        at, first = loops.index(loop), self.here.counter(word.dimension)
        words = writer.assign("words", minimum(counts[at], word.extent // word.count - first))
        self._copy(pack, access, loops, [*counts[:at], words, *counts[at + 1 :]])
        with writer.if_(words < counts[at]):
            self.here.starts[loop.name] = words
            some = writer.assign("some", word.extent - times(first + words, Number(word.count)))
            self._each(pack, access, [*loops[:at], *loops[at + 1 :]], [*counts[:at], *counts[at + 1 :]], some)
        del self.here.starts[loop.name]

    def _fill(self, pack: Pack, array: Name, loops: Sequence[Loop], counts: Sequence[Expr]) -> None:
        """Write zeros into lanes that a short iteration does not have."""
        writer, lanes = self.writer, self.nest.lanes
        assert lanes is not None
        count, all_lanes = self.here.trips(lanes), Number(lanes.extent)
        zero = cast(array.type[:-1], 0) if self.algorithm.operand(pack.operand).word else self.algorithm.zero
        if count == all_lanes:
            return
        others = [(loop, trips) for loop, trips in zip(loops, counts, strict=True) if loop is not lanes]

        def fill() -> None:
            with writer.loop(lanes.name, count, all_lanes) as lane:
                self.here.starts[lanes.name] = lane
                writer.store(array, self._place(pack.layout), zero)
            del self.here.starts[lanes.name]

        with writer.if_(count < all_lanes):
            self.here.each([loop for loop, _ in others], [trips for _, trips in others], fill)

    def _correct(self, pack: Pack, loops: Sequence[Loop], counts: Sequence[Expr]) -> None:
        """Add up the products of flipped bits. ::

            for p in range(k):
                for j in lanes(32):
                    panel_flipped[j] = dot_bytes(panel_flipped[j], uint32(2155905152), panel[p * 32 + j])
        """
        sums, algorithm = self.corrections[pack.into], self.algorithm
        both = list(zip(loops, counts, strict=True))
        free = [(loop, count) for loop, count in both if not self.nest.is_reduced(loop)]
        terms = [x for x in both if x not in free]
        flipped = {a.name: FLIPPED for a in algorithm.operands if a.name != pack.operand}

        def put(value: Callable[[Expr], Expr]) -> Callable[[], None]:
            at = functools.partial(self._place, self._free(pack))
            return lambda: self.writer.store(sums, at(), value(sums[at()]))

        def with_term(total: Expr) -> Expr:
            element = self.arrays[pack.into][self._place(pack.layout)]
            return algorithm.updated(total, {**flipped, pack.operand: element})

        for order, value in ((free, lambda _: algorithm.zero), ([*terms, *free], with_term)):
            self.here.each([loop for loop, _ in order], [count for _, count in order], put(value))

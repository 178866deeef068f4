"""The passes of a radix sort over words in memory: how often a digit has each value, and where elements go.

    for t in range(n0):                              `count`
        at = table + (int64(shr_logical(k0[t], shift)) & 255)
        counts[at] = uint32(int64(counts[at]) + 1)
    total = int64(0)                                 `find_places`
    for v in range(256):
        here = int64(counts[table + v])
        counts[table + v] = uint32(total)
        total += here
    for t in range(n0):
        place = int64(counts[at])                    `next_place`
        counts[at] = uint32(place + 1)
        k1[place] = k0[t]

The place of an element is the number of elements with lower digits, and of earlier ones with the same digit.
"""

from __future__ import annotations

from collections.abc import Callable

from ..loops.expressions import Expr, Name, Number, call, is_number
from ..loops.writer import Writer, cast


class Digits:
    """The statements for words of a type, whose keys are their bits from `lowest` on. A digit has `bits` bits; it is
    named by the bit at which it begins, its shift."""

    def __init__(self, writer: Writer, kind: str, bits: int, lowest: int = 0) -> None:
        self._writer, self._kind, self._lowest = writer, kind, lowest
        self.bits = bits
        self.values: int = 1 << bits

    def shift(self, digit: int) -> int:
        """The bit of a word at which digit number `digit` begins."""
        return self._lowest + digit * self.bits

    def of(self, word: Expr, shift: Expr) -> Expr:
        """A digit of a word, as an index."""
        return cast("int64", self.shifted(word, shift)) & self.values - 1

    def shifted(self, word: Expr, shift: Expr) -> Expr:
        """A word without the bits below a digit."""
        return word if is_number(shift, 0) else call("shr_logical", word, cast(self._kind, shift))

    def count(
        self, word: Callable[[Expr], Expr], bounds: tuple[Expr, ...], digits: int, counts: Name, table: Expr
    ) -> None:
        """Count how often each of the first `digits` digits has each value in the words ``word(t)``, t within `bounds`:
        in as many tables, one after the other from counts[table] on."""
        writer = self._writer
        with writer.loop("v", digits * self.values) as v:
            writer.store(counts, table + v, cast("uint32", 0))
        with writer.loop("t", *bounds) as t:
            for digit in range(digits):
                begin = table + digit * self.values
                self.add(counts, begin + self.of(word(t), Number(self.shift(digit))))

    def add(self, counts: Name, at: Expr) -> None:
        """Count one more at a place of a table."""
        at = self._writer.assign("at", at)
        self._writer.store(counts, at, cast("uint32", cast("int64", counts[at]) + 1))

    def find_places(self, counts: Name, table: Expr) -> None:
        """Put the place of the first element with each value of a digit where the table has their number."""
        writer = self._writer
        total = writer.assign("total", cast("int64", 0))
        with writer.loop("v", self.values) as v:
            here = writer.assign("here", cast("int64", counts[table + v]))
            writer.store(counts, table + v, cast("uint32", total))
            writer.augment(total, "+", here)

    def next_place(self, places: Name, at: Expr) -> Name:
        """The place of the next element whose digit has its entry at `at`."""
        writer = self._writer
        at = writer.assign("at", at)
        place = writer.assign("place", cast("int64", places[at]))
        writer.store(places, at, cast("uint32", place + 1))
        return place

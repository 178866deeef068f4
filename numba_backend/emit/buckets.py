"""Sort the buckets of a row: the elements that agree in the uppermost digit of their keys, one bucket after the other.

A row that was divided by its uppermost digit is sorted if each bucket is. A bucket lies in a few cache lines of the
thread that sorts it, where the passes over a whole row read lines that other threads wrote. Most buckets are small, and
the place of an element is the number of smaller ones; as many comparisons as there are pairs are few in vectors::

    for t in range(count):
        low[t] = <the key's lower bits> << 8 | t       different numbers: equal keys keep their order
    for at in range(0, count, 64):
        for l in lanes(64):
            ranks[l] = int32(0)
        for j in range(count):
            one = low[j]
            for l in lanes(64):
                ranks[l] = add(ranks[l], int32(one < low[at + l]))
        ...
    for t in range(count):
        out0[start + places[t]] = k0[start + t]

Larger ones, as where keys are not spread evenly, are sorted by digits of 8 bits, from the least significant one
(`digits.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..loops.expressions import ZERO, Expr, Name, Number, call
from ..loops.writer import Writer, cast
from .digits import Digits

RANKED_BITS = 8
RANKED = 1 << RANKED_BITS
"""Elements of a bucket that is sorted by ranks, at most."""
LANES = 64
"""Elements that are compared with one at a time."""
DIGIT_BITS = 8

Result = tuple[Name, Callable[[Expr], Expr], Callable[[Expr], Expr]]
"""Where elements go: the array, the offset of an element of the row, and what is stored for a word."""


class Buckets:
    """The statements that sort a bucket of `words`: keys, from bit `lowest` on, and what moves with them below. `spare`
    has a place for each word; a result may be the same array."""

    def __init__(self, writer: Writer, words: Name, spare: Name, kind: str, lowest: int, unsorted_bits: int) -> None:
        """`unsorted_bits`: the bits of keys below the uppermost digit, at most."""
        assert unsorted_bits + RANKED_BITS < 32
        self._writer, self._words, self._spare, self._lowest = writer, words, spare, lowest
        self._digits = Digits(writer, kind, DIGIT_BITS, lowest)
        self._tables = -(-unsorted_bits // DIGIT_BITS)
        self._low = writer.local_array("low", RANKED + LANES, "int32")
        self._places = writer.local_array("places", RANKED + LANES, "int32")
        self._ranks = writer.local_array("ranks", LANES, "int32")
        self._counts = writer.local_array("counts", self._tables << DIGIT_BITS, "uint32")

    def sort(self, base: Expr, start: Name, stop: Name, mask: Name, results: Sequence[Result]) -> None:
        """Sort the elements from `start` to before `stop` of a row that begins at `base`. `mask`: the bits of a key, as
        an int32, in which they may differ."""
        writer = self._writer
        count = writer.assign("count", stop - start)
        first = writer.assign("first_word", base + start)
        with writer.if_(mask.ne(0) & (count <= RANKED), guarded=True):
            self._rank(first, count, mask)
            with writer.loop("t", count) as t:
                word = writer.assign("word", self._words[first + t])
                to = writer.assign("to", start + cast("int64", self._places[t]))
                for target, offset, value in results:
                    writer.store(target, offset(to), value(word))
        with writer.else_(guarded=True):
            with writer.if_(mask.ne(0), guarded=True):
                self._distribute(first, count)
            for target, offset, value in results:
                with writer.loop("t", count) as t:
                    writer.store(target, offset(start + t), value(self._words[first + t]))

    def _rank(self, first: Name, count: Name, mask: Name) -> None:
        writer, low, ranks = self._writer, self._low, self._ranks
        with writer.loop("t", count) as t:
            key = cast("int32", cast("uint32", self._digits.shifted(self._words[first + t], Number(self._lowest))))
            upper = call("shl", call("bit_and", key, mask), cast("int32", RANKED_BITS))
            writer.store(low, t, call("bit_or", upper, cast("int32", t)))
        with writer.loop("at", Number(0), count, step=LANES) as at:
            with writer.lanes("l", LANES) as lane:
                writer.store(ranks, lane, cast("int32", 0))
            with writer.loop("j", count) as j:
                one = writer.assign("one", low[j])
                with writer.lanes("l", LANES) as lane:
                    writer.store(ranks, lane, call("add", ranks[lane], cast("int32", one < low[at + lane])))
            with writer.lanes("l", LANES) as lane:
                writer.store(self._places, at + lane, ranks[lane])

    def _distribute(self, first: Name, count: Name) -> None:
        writer, words, counts, digits = self._writer, self._words, self._counts, self._digits
        digits.count(lambda t: words[first + t], (count,), self._tables, counts, ZERO)
        with writer.loop("digit", self._tables) as number:
            table = writer.assign("table", number * digits.values)
            shift = writer.assign("shift_of_digit", number * digits.bits + self._lowest)
            agreeing = cast("int64", counts[table + digits.of(words[first], shift)])
            with writer.if_(agreeing < count, guarded=True):
                digits.find_places(counts, table)
                with writer.loop("t", count) as t:
                    word = writer.assign("word", words[first + t])
                    place = digits.next_place(counts, table + digits.of(word, shift))
                    writer.store(self._spare, first + place, word)
                with writer.loop("t", count) as t:
                    writer.store(words, first + t, self._spare[first + t])

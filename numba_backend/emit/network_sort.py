"""Sorting many short rows at once: a network of comparisons, in which each step acts on a block of rows.

    for block in <blocks of 8 rows>:
        for t in range(n0):
            w0[source + t * 8] = <key of x0[base0 + t]>
            ...                                     and of the seven other rows
        p = top                                     merge exchange (Batcher; Knuth, volume 3, algorithm 5.2.2M)
        while p > 0:
            q, r, d = top, 0, p
            while <steps with this p>:
                for start in range(r, n0 - d, 2 * p):
                    for i in range(start, minimum(start + p, n0 - d)):
                        for l in range(8):
                            lows[l] = minimum(w0[...], w0[...])
                            highs[l] = maximum(w0[...], w0[...])
                        ...                         the lower keys go to i, the higher ones to i + d
                q, r, d = q // 2, p, q - p
            p = p // 2
        ...                                         the elements are computed from the keys, or moved

Which elements are compared does not depend on their values, so there is no branch, and the loop over rows is made of
vectors. If other arrays move along, or the key is not invertible, the place of each element is in the low bits of its
key. So no two keys are equal, and the order is the stable one. The last block is the last 8 rows, though some of them
may be in the one before it too: both write the same.
"""

from __future__ import annotations

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ..cost import ELEMENT, EXCHANGED_BYTE
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import Expr, Name, call, minimum
from ..loops.writer import boolean, cast
from .element import CAST
from .radix_sort import key_at, restore_merged
from .sort import RowSorter
from .sort_keys import SortKey, element_of, is_own_key, keys_of

LANES = 8
"""The rows of a block. LLVM can turn eight streams of elements into one, and back, within vectors."""

MOST_SHORT, MOST_LONG = 2048, 1024
"""The longest rows that the network sorts faster than digits do, for keys of up to 32 and of 64 bits."""


class NetworkSort(RowSorter):
    """The kernel that sorts rows by one key, many rows at a time."""

    def __init__(
        self, comparator: HloComputation, key: SortKey, types: list[ElementType], dimensions: tuple[int, ...], axis: int
    ) -> None:
        self.key = key
        self.keys_only: bool = is_own_key((key,), len(types))
        self.place_bits = 0 if self.keys_only else 16 if key.bits <= 16 else 32
        self.word = ElementType.U64 if key.bits + self.place_bits > 32 else ElementType.U32
        super().__init__("network_sort", comparator, types, dimensions, axis, [self.word], LANES)
        self.top: Name = self.text.argument("top", 1 << max(self.size - 1, 1).bit_length() - 1)
        self.m2: Name = self.text.argument("m2", self.rows)
        self.keyed: Name = self.work[0].pointer

    def scratch(self) -> list[tuple[ElementType, int]]:
        """Types and numbers of elements: one block of keys for each group."""
        return [(self.word, self.groups * self.size * LANES)]

    def emit(self) -> EmittedKernel:
        writer, kind = self.writer, CAST[self.word]
        self.lows, self.highs = (writer.local_array(name, LANES, kind) for name in ("lows", "highs"))
        with (
            writer.loop("group", LO, HI) as group,
            writer.loop("block", group * self.m0, minimum(group * self.m0 + self.m0, self.m1)) as block,
        ):
            source = writer.assign("source", group * self.n0 * LANES)
            row = writer.assign("row", minimum(block * LANES, self.m2 - LANES))
            bases = [writer.assign(f"base{number}", self.first_of(row + number)) for number in range(LANES)]
            with writer.loop("t", self.n0) as t:
                for number, self.base in enumerate(bases):
                    writer.store(self.keyed, source + t * LANES + number, self._word_at(t))
            self._sort(source)
            with writer.loop("t", self.n0) as t:
                for number, self.base in enumerate(bases):
                    self._put(t, self.keyed[source + t * LANES + number])
            if self.keys_only and self.key.merges_values:
                with writer.loop("l", LANES) as lane:
                    self.base: Name = writer.assign("base", self.first_of(row + lane))
                    restore_merged(self, self.key, self._key_at)
        steps = self.size.bit_length() ** 2
        return self.finish((2 * ELEMENT + EXCHANGED_BYTE * steps * self.word.byte_width) * self.size * LANES)

    def _key_at(self, t: Expr) -> Expr:
        """The key of an element in memory."""
        return key_at(self.text, self.key, lambda operand: self.element(self.inputs[operand], self.offset(t)))

    def _word_at(self, t: Expr) -> Expr:
        """The same, with its place if that is needed."""
        kind, key = CAST[self.word], self._key_at(t)
        if not self.place_bits:
            return cast(kind, key)
        shifted = call("shl", cast(kind, key), cast(kind, self.place_bits))
        return cast(kind, call("bit_or", shifted, cast(kind, t)))

    def _sort(self, source: Name) -> None:
        writer, n0 = self.writer, self.n0
        p = writer.assign("p", self.top)
        with writer.while_(p > 0):
            q = writer.assign("q", self.top)
            r = writer.assign("r", 0)
            d = writer.assign("d", p)
            more = writer.assign("more", boolean(True))
            with writer.while_(more):
                start = writer.assign("start", r)
                with writer.while_(start < n0 - d):
                    with writer.loop("i", start, minimum(start + p, n0 - d)) as i:
                        first = writer.assign("first", source + i * LANES)
                        second = writer.assign("second", first + d * LANES)
                        self._exchange(first, second)
                    writer.augment(start, "+", p + p)
                with writer.if_(q.eq(p)):
                    writer.assign(more, boolean(False))
                with writer.else_():
                    writer.assign(d, q - p)
                    writer.assign(q, q // 2)
                    writer.assign(r, p)
            writer.assign(p, p // 2)

    def _exchange(self, first: Name, second: Name) -> None:
        """The lower of two keys comes first, in each row. ``lows`` and ``highs`` are vectors in the end."""
        writer, k = self.writer, self.keyed
        with writer.loop("l", LANES) as lane:
            a, b = (writer.assign(name, k[at + lane]) for name, at in (("a", first), ("b", second)))
            writer.store(self.lows, lane, call("minimum", a, b))
            writer.store(self.highs, lane, call("maximum", a, b))
        for kept, at in ((self.lows, first), (self.highs, second)):
            with writer.lanes("l", LANES) as lane:
                writer.store(k, at + lane, kept[lane])

    def _put(self, t: Expr, number: Expr) -> None:
        """Writes the element at a position of the row in its new order."""
        writer = self.writer
        if self.keys_only:
            writer.store(self.outputs[0].pointer, self.offset(t), element_of(self.key, number))
            return
        place = writer.let("place", cast("int64", number) & (1 << self.place_bits) - 1)
        for x, out in zip(self.inputs, self.outputs, strict=True):
            writer.store(out.pointer, self.offset(t), x.pointer[self.offset(place)])


def network_sort_of(instruction: HloInstruction) -> NetworkSort | None:
    """The kernel for many short rows and a comparator that compares one key; None for others."""
    shape, attributes = instruction.operands[0].shape, instruction.attributes
    size = shape.dimensions[attributes.dimension]
    keys = keys_of(attributes.to_apply)
    if keys is None or len(keys) > 1 or shape.num_elements < LANES * size or size < 2:
        return None
    types = [o.shape.element for o in instruction.operands]
    (key,) = keys
    keys_only = is_own_key(keys, len(types))
    if not keys_only and key.bits > 32:
        return None
    bits = key.bits if keys_only else 32 if key.bits <= 16 else 64
    if size > (MOST_SHORT if bits <= 32 else MOST_LONG):
        return None
    return NetworkSort(attributes.to_apply, key, types, shape.dimensions, attributes.dimension)

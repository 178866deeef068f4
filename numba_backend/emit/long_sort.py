"""Sort a few long rows by integer keys, each on several threads: by the digits of radix_sort.py, in several kernels.

A row is cut into blocks, which threads share. For each digit, from the least significant one, a kernel counts how often
the digit has each value in each block, and another moves the elements::

    def sort_move(lo, hi, k0, h0, d0, x0, k1, out0, n0, m0, m1, shift):
        for item in range(lo, hi):                     row * m1 + block
            ...                                        earlier[v]: elements with digit v in earlier blocks
            ...                                        places[v] = elements with a lower digit + earlier[v]
            for t in range(start, stop):
                at = int64(shr_logical(k0[base + t], shift)) & 255
                place = places[at]
                places[at] += 1
                k1[base + place] = k0[base + t]        the key, and with it the elements as they lie in memory
                out0[base + place] = x0[base + t]

Blocks keep their order within a digit, so the sort is stable, and the result does not depend on which thread sorts
which block. A digit in which all elements agree is copied. An operand that is the key is not moved: it is computed from
the keys at the end. If there are several other operands, the numbers of their elements are moved, and the elements
once, at the end. Keys of floats lose which zero or NaN an element was; if there are any other than 0.0 and the usual
NaN, these are put back in the original order. For one thread a row is one block, and all its digits are counted at
once.

The first digit's elements come from the operands, and the last one's go into the results. Between them, two arrays of
scratch memory are used alternately.

A key of 32 bits and one element of 32 bits that moves with it, or its number, are one word (`packed`), the key in its
upper half: one store to one of the places, not two. They are taken apart at the end. If nothing reads the keys after
the last digit, as in argsort, only the elements are moved by it.

Each pass reads lines that another core has written, which takes most of its time where caches are far from each other.
So a row of up to `_MOST_DIVIDED` such words is divided by the uppermost digit in which elements differ, and then each
bucket of equal digits is sorted in the caches of one thread (`buckets.py`). The first block says where buckets begin,
and threads share *stretches* of the row: a bucket belongs to the one in which it begins. If one bucket has more
elements than a thread should sort alone, the row is sorted digit by digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.support.records import dataclass
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ZERO, Binary, Expr, Name, Number, call, maximum, minimum
from ..loops.writer import cast
from ..machine import target_machine
from .buckets import Buckets, Result
from .digits import Digits
from .element import CAST
from .radix_sort import key_at, restore_merged
from .scalar_computations import KernelText
from .sort import RowSorter
from .sort_keys import SortKey, element_of, keys_of

LEAST = 16384
"""Shorter rows are sorted by one thread each."""
_BLOCK = 8192
_BLOCKS_OF_THREAD = 4
_BLOCK_PER_VALUE = 12
"""A row has a block for each thread if they have `_BLOCK` elements, and more if they have so many for each value of a
digit, as each block adds up the counts of all (100,000 elements, digits of 11 bits, 2 threads: 1.13 times as fast)."""

_TABLES = 2
"""Tables in which a block is counted in turn: a number that was just written can be read only a few cycles later."""


def _wide_bytes() -> int:
    """Digits have 11 bits if the keys and what moves with them, twice, take no more than this, and 8 bits otherwise:
    writing to 2048 places in turn is slow where these do not stay in a second-level cache."""
    return 4 * target_machine().second_cache


_MOST_DIVIDED = 1 << 17
"""Elements of a row that is divided into 2048 buckets first. In pairs on two cores of an EPYC, 100,000 keys alone take
0.70 of the time, with an element each 0.55, their order 0.55, in minutes in which a line takes 250 ns from one core to
the other; in others 0.8 to 1.1. 250,000 take 0.75 and 1.2."""
_STRETCH, _STRETCHED_ELEMENT = 2048, 2.5
"""Elements of a row whose buckets are sorted by one thread, and nanoseconds that one takes."""
_UPPERMOST = -1
"""In place of the bit of a digit: the uppermost digit; and no digit."""
_SHARES_OF_BUCKET = 2
"""No bucket has more elements than a thread's part of the row, divided by this."""

HALF = 32
"""Bits of a half of a word."""
_WORDS = frozenset((ElementType.U32, ElementType.S32, ElementType.F32))
"""Elements that can be the lower half of a word."""

Place = tuple[str, int]
"""An array: ``("x", 2)`` is the third operand, ``("out", 0)`` the first result, ``("w", 3)`` the fourth of the arrays
in scratch memory."""

_Moved = tuple[Name, bool, Callable[[Name, Expr], Expr]]
"""An array that elements move to, whether it is a result, and what moves there: of the element's number in the row, and
of its key."""


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel of a sort, and the memory of its pointers. `when`: it runs if the pred there is so; steps that run if it
    is false follow those that run if it is true."""

    kernel: EmittedKernel
    operands: tuple[Place, ...]
    outputs: tuple[Place, ...]
    when: tuple[Place, bool] | None = None


class LongSort:
    """The kernels that sort a few long rows by `keys`."""

    def __init__(
        self, comparator: HloComputation, keys: tuple[SortKey, ...], types: list[ElementType],
        dimensions: tuple[int, ...], axis: int, threads: int, read: Collection[int],
    ) -> None:  # fmt: skip
        """`read`: the results that something reads."""
        self.comparator, self.keys, self.types = comparator, keys, types
        self.dimensions, self.axis = dimensions, axis
        self.size: int = dimensions[axis]
        self.stride: int = math.prod(dimensions[axis + 1 :])
        self.rows: int = math.prod(dimensions) // self.size
        self.key_type = ElementType.U64 if any(key.bits == 64 for key in keys) else ElementType.U32
        (first, *others) = keys
        self.derived: int | None = first.operand if not others and first.is_invertible else None
        """The operand that is computed from the keys."""
        self.carried: list[int] = [k for k in range(len(types)) if k != self.derived]
        self.computed: bool = self.derived is not None and (self.derived in read or not self.carried)
        """Something reads that operand's result."""
        self.indexed: bool = len(self.carried) > 1
        """The elements' numbers move with the keys, and the elements at the end."""
        self.moving: list[ElementType] = [ElementType.U32] if self.indexed else [types[k] for k in self.carried]
        width = self.key_type.byte_width + sum(t.byte_width for t in self.moving)
        self.digit_bits = 11 if 2 * self.size * width <= _wide_bytes() else 8
        sharing, least = threads // self.rows, max(_BLOCK, _BLOCK_PER_VALUE << self.digit_bits)
        more = min(_BLOCKS_OF_THREAD * sharing, self.size // least)
        self.blocks = max(1, min(sharing, self.size // _BLOCK), more) if threads > 1 else 1
        is_half = self.key_type is ElementType.U32 and len(keys) == 1
        self.packed: bool = is_half and self.moving in ([t] for t in _WORDS)
        """The key is the upper half of a word, and the element that moves with it the lower one."""
        if self.packed:
            self.key_type = ElementType.U64
        self.in_buckets: bool = (
            is_half and first.bits == HALF and (self.packed or not self.moving)
            and self.digit_bits == 11 and self.blocks > 1 and self.rows == 1 and self.size <= _MOST_DIVIDED
        )  # fmt: skip
        """The row is divided by its uppermost digit first."""
        self._most_alone: int = int(self.size / (_SHARES_OF_BUCKET * threads))
        """Elements of a bucket, at most."""
        self.keys_are_read: bool = self.computed or (self.packed and self.indexed)
        """After the last digit."""
        self.steps: list[Step] = []
        self._scratch: list[tuple[ElementType, int]] = []

    def scratch(self) -> list[tuple[ElementType, int]]:
        """Types and numbers of elements, after `emit`."""
        return self._scratch

    def _memory(self, element_type: ElementType, count: int) -> Place:
        self._scratch.append((element_type, count))
        return "w", len(self._scratch) - 1

    def emit(self) -> list[Step]:
        """The kernels, in order."""
        keyed, odd = self._emit_buckets() if self.in_buckets else self._emit_digits()
        if self.derived is not None and self.computed:
            out = [("out", self.derived)]
            self._add(self._elements(self.keys[0], self.derived), [keyed], out)
            if odd:
                self._add(self._restored(self.keys[0], self.derived), [("x", self.derived), keyed, *odd], out)
        return self.steps

    def _emit_buckets(self) -> tuple[Place, list[Place]]:
        """Divide rows by one digit, and sort what agrees in it; gives the memory of the keys in order, and of the
        numbers of elements that are not what their keys stand for."""
        count, (key,) = self.rows * self.size, self.keys
        divided, keyed = (self._memory(self.key_type, count) for _ in range(2))
        counts = self._memory(ElementType.U32, self.rows * self.blocks << self.digit_bits)
        differing = self._memory(self.key_type, self.rows * self.blocks)
        odd = self._odd()
        starts, even = self._memory(ElementType.U32, self._starts), self._memory(ElementType.PRED, 1)
        given, results = [("x", k) for k in range(len(self.types))], [("out", k) for k in self.carried]
        self._add(self._keys(key, first=True, merges=bool(odd)), given, [keyed, counts, differing, *odd])
        self._add(self._count(None), [keyed, differing], [counts])
        self._add(self._divide(), [keyed, counts, differing], [divided, starts, even])
        sorted_ = [] if self.keys_are_read else results
        self._add(self._sort_buckets(), [starts], [divided, keyed, *sorted_], (even, True))
        memory, digits = [divided, keyed], -(-key.bits // self.digit_bits)
        for digit in range(digits):
            last = digit == digits - 1
            self._add(self._count(digit), [memory[0], differing], [counts], (even, False))
            moved = results if last and not self.keys_are_read else [memory[1]]
            move = self._move(key, digit, first=False, last=last)
            self._add(move, [memory[0], counts, differing], moved, (even, False))
            memory.reverse()
        self._add_elements(keyed, given, results)
        return keyed, odd

    def _odd(self) -> list[Place]:
        merges = self.computed and self.keys[0].merges_values
        return [self._memory(ElementType.S64, self.rows * self.blocks)] if merges else []

    def _add_elements(self, keyed: Place, given: list[Place], results: list[Place]) -> None:
        """What moved with the keys of packed words, at its places."""
        if self.packed and self.indexed:
            self._add(self._gathered(), [keyed, *[given[k] for k in self.carried]], results)
        elif self.packed and self.keys_are_read:
            self._add(self._unpacked(), [keyed], results)

    def _emit_digits(self) -> tuple[Place, list[Place]]:
        """Sort rows digit by digit; gives the same as `_emit_buckets`."""
        count, moving = self.rows * self.size, [] if self.packed else self.moving
        digits = [range(-(-key.bits // self.digit_bits)) for key in reversed(self.keys)]
        moves = [(key, digit) for key, some in zip(reversed(self.keys), digits, strict=True) for digit in some]
        keyed = [self._memory(self.key_type, count) for _ in range(2)]
        counts = self._memory(ElementType.U32, self.rows * self.blocks * max(map(len, digits)) << self.digit_bits)
        differing = self._memory(self.key_type, self.rows * self.blocks)
        odd = self._odd()
        spare = [[self._memory(t, count) for t in moving] for _ in range(2)] if len(moves) > 1 or self.indexed else []
        given, results = [("x", k) for k in range(len(self.types))], [("out", k) for k in self.carried]
        current = [] if self.indexed or self.packed else [given[k] for k in self.carried]
        for number, (key, digit) in enumerate(moves):
            first, last = not number, number == len(moves) - 1
            if not digit:
                elements = [*given, *current] if first or self.indexed else current
                self._add(self._keys(key, first=first, merges=bool(odd)), elements, [keyed[0], counts, differing, *odd])
            elif self.blocks > 1:
                self._add(self._count(digit), [keyed[0], differing], [counts])
            operands = [keyed[0], counts, differing, *current]
            current = [] if self.packed else results if last and not self.indexed else spare[number % 2]
            moved = [keyed[1], *current] if self.keys_are_read or not last else current or results
            self._add(self._move(key, digit, first=first, last=last), operands, moved)
            keyed.reverse()
        if self.indexed and not self.packed:
            self._add(self._gathered(), [*current, *[given[k] for k in self.carried]], results)
        else:
            self._add_elements(keyed[0], given, results)
        return keyed[0], odd

    def _add(
        self, kernel: EmittedKernel, operands: Sequence[Place], outputs: Sequence[Place],
        when: tuple[Place, bool] | None = None,
    ) -> None:  # fmt: skip
        self.steps.append(Step(kernel, tuple(operands), tuple(outputs), when))

    def _key(self, word: Expr) -> Expr:
        """The key in a word."""
        return cast("uint32", call("shr_logical", word, cast("uint64", HALF))) if self.packed else word

    def _element(self, word: Expr) -> Expr:
        """The element in a word."""
        low = cast("uint32", word)
        value = call("bitcast_s32_f32", cast("int32", low)) if self.moving[0] is ElementType.F32 else low
        return cast(CAST[self.moving[0]], value)

    @property
    def _lowest(self) -> int:
        """The lowest bit of a key in its word."""
        return HALF if self.packed else 0

    @property
    def _uppermost(self) -> int:
        """The bit of a word at which the uppermost digit begins, if elements differ in their keys' first bits."""
        return self._lowest + HALF - self.digit_bits

    @property
    def _starts(self) -> int:
        """Where buckets begin and the last one ends, and the key's bits below the digit."""
        return (1 << self.digit_bits) + 2

    def _digits(self, key: SortKey) -> int:
        """How many digits a table of counts has. The only block of a row has the same elements in all orders: all of
        its digits are counted at once."""
        return -(-key.bits // self.digit_bits) if self.blocks == 1 else 1

    def _keys(self, key: SortKey, *, first: bool, merges: bool) -> EmittedKernel:
        """Computes the keys, counts their digits, finds the bits in which they differ, and counts the elements that are
        not what their keys stand for. `first`: nothing has been moved yet."""
        block = _Block("sort_keys", self, self.comparator)
        writer, kind = block.writer, CAST[self.key_type]
        inputs = [block.text.operand(f"x{k}", t, k) for k, t in enumerate(self.types)]
        given, number_of = first or self.indexed, None
        if self.indexed and not first:
            number_of = block.text.operand("i0", ElementType.U32, len(inputs)).pointer
        keyed = block.text.output("k0", self.key_type, 0).pointer
        counts = block.text.output("h0", ElementType.U32, 1).pointer
        differing = block.text.output("d0", self.key_type, 2).pointer
        odd = block.text.output("odd0", ElementType.S64, 3).pointer if merges else None
        tables = block.tables() if self.blocks > 1 else None

        def number_at(t: Expr) -> Expr:
            if number_of is not None:
                t = writer.let("t", cast("int64", number_of[block.place(t)]))
            found = key_at(block.text, key, lambda k: inputs[k].load(block.place(t, given)).at(writer.depth))
            if not self.packed:
                return cast(kind, found)
            moved = t if self.indexed else inputs[self.carried[0]].pointer[block.place(t, given)]
            low = _bits_of(self.moving[0], moved)
            upper = call("shl", cast(kind, cast("uint32", found)), cast(kind, HALF))
            return call("bit_or", upper, cast(kind, cast("uint32", low)))

        with block.items() as item:
            number = writer.assign("first_number", number_at(Number(0)))
            bits = writer.assign("bits", cast(kind, 0))
            others = writer.assign("others", cast("int64", 0))
            with block.elements() as t:
                here = writer.assign("number", number_at(t))
                writer.store(keyed, block.place(t), here)
                writer.assign(bits, cast(kind, call("bit_or", bits, call("bit_xor", here, number))))
                if merges and self.derived is not None:
                    found = inputs[self.derived].pointer[block.place(t, given)]
                    other = _bits(key, found).ne(_bits(key, element_of(key, self._key(here))))
                    writer.augment(others, "+", cast("int64", other))
            writer.store(differing, item, bits)
            if odd is not None:
                writer.store(odd, item, others)
            if tables is None:
                table = writer.assign("table", item * (self._digits(key) << self.digit_bits))
                bounds = block.start, block.stop
                block.digits.count(lambda t: keyed[block.place(t)], bounds, self._digits(key), counts, table)
            else:
                shift = self._uppermost if self.in_buckets else block.digits.shift(0)
                block.count(keyed, Number(shift), tables, counts, item)
        return block.finish()

    def _count(self, digit: int | None) -> EmittedKernel:
        """Counts a digit, unless all elements agree in it. None: the uppermost digit in which they differ, unless that
        is the one that was counted with the keys."""
        block = _Block("sort_count", self)
        given = block.text.argument("shift", _UPPERMOST if digit is None else block.digits.shift(digit))
        counted = block.text.argument("counted", self._uppermost if digit is None else _UPPERMOST)
        keyed = block.text.operand("k0", self.key_type, 0).pointer
        differing = block.text.operand("d0", self.key_type, 1).pointer
        counts = block.text.output("h0", ElementType.U32, 0).pointer
        tables, writer = block.tables(), block.writer
        with block.items() as item:
            bits = block.differing(differing)
            is_upper = writer.assign("is_upper", given < 0)
            at = writer.assign("bit", given + (block.uppermost(bits) - given) * cast("int64", is_upper))
            with writer.if_((is_upper | (block.digits.of(bits, at) > 0)) & at.ne(counted), guarded=True):
                block.count(keyed, at, tables, counts, item)
        return block.finish()

    def _move(self, key: SortKey, digit: int, *, first: bool, last: bool) -> EmittedKernel:
        """Moves the elements of each block. `first`, `last`: from the operands, into the results."""
        block = _Block("sort_move", self)
        writer, text, values = block.writer, block.text, 1 << self.digit_bits
        shift = text.argument("shift", block.digits.shift(digit))
        tables = self._digits(key)
        table = text.argument("table", digit) if tables > 1 else ZERO
        keyed = text.operand("k0", self.key_type, 0).pointer
        counts = text.operand("h0", ElementType.U32, 1).pointer
        differing = text.operand("d0", self.key_type, 2).pointer
        moves = self._what_moves(block, first=first, last=last)
        places = writer.local_array("places", values, "uint32")
        later = writer.local_array("later", values, "uint32")
        with block.items() as item:
            with writer.if_(block.differs(differing, shift), guarded=True):
                self._find_places(block, item, counts, places, later, table, tables)
                with block.elements() as t:
                    number = writer.assign("number", keyed[block.place(t)])
                    block.move(number, block.digits.of(number, shift), places, moves, t)
            with writer.else_(guarded=True):
                for target, given, value in moves:
                    with block.elements() as t:
                        writer.store(target, block.place(t, given), value(t, keyed[block.place(t)]))
        return block.finish()

    def _divide(self) -> EmittedKernel:
        """Moves the elements of each block to their buckets."""
        block = _Block("sort_divide", self)
        writer, text, values = block.writer, block.text, 1 << self.digit_bits
        keyed = text.operand("k0", self.key_type, 0).pointer
        counts = text.operand("h0", ElementType.U32, 1).pointer
        differing = text.operand("d0", self.key_type, 2).pointer
        target = text.output("k1", self.key_type, 0).pointer
        starts = text.output("starts", ElementType.U32, 1).pointer
        even = text.output("even", ElementType.PRED, 2).pointer
        most = text.argument("most", self._most_alone)
        places = writer.local_array("places", values, "uint32")
        later = writer.local_array("later", values, "uint32")
        with block.items() as item:
            shift = writer.assign("shift", block.uppermost(block.differing(differing)))
            self._find_places(block, item, counts, places, later, ZERO, 1)
            with writer.if_(item.eq(block.first_item), guarded=True):
                largest = writer.assign("largest", cast("int64", 0))
                with writer.loop("v", values) as v:
                    writer.store(starts, v, places[v])
                    writer.assign(largest, maximum(largest, cast("int64", later[v])))
                writer.store(even, 0, largest <= most)
                writer.store(starts, values, cast("uint32", block.n0))
                above = call("shl", cast("uint32", 1), cast("uint32", shift - self._lowest))
                writer.store(starts, values + 1, cast("uint32", call("subtract", above, cast("uint32", 1))))
            with block.elements() as t:
                number = writer.assign("number", keyed[block.place(t)])
                moves: list[_Moved] = [(target, False, lambda t, number: number)]
                block.move(number, block.digits.of(number, shift), places, moves, t)
        return block.finish()

    def _sort_buckets(self) -> EmittedKernel:
        """Sorts the buckets that begin in each stretch of a row."""
        stretches = max(self.blocks, -(-self.size // _STRETCH))
        block = _Block("sort_buckets", self, blocks=stretches)
        writer, text, values, kind = block.writer, block.text, 1 << self.digit_bits, CAST[self.key_type]
        starts = text.operand("starts", ElementType.U32, 0).pointer
        words = text.output("k0", self.key_type, 0).pointer
        spare = text.output("k1", self.key_type, 1).pointer
        buckets = Buckets(writer, words, spare, kind, self._lowest, HALF - self.digit_bits)
        if self.keys_are_read:
            result: Result = spare, lambda t: block.place(t), lambda word: word
        else:
            out = text.output("out0", self.moving[0], 2).pointer
            result = out, lambda t: block.place(t, True), self._element
        with block.items():
            low, after = (block.first_from(starts, end) for end in (block.start, block.stop))
            mask = writer.assign("mask", cast("int32", starts[values + 1]))
            with writer.loop("v", low, after) as v:
                start = writer.assign("begin", cast("int64", starts[v]))
                stop = writer.assign("end", cast("int64", starts[v + 1]))
                with writer.if_(start < stop, guarded=True):
                    buckets.sort(block.base, start, stop, mask, [result])
        return block.finish(_STRETCHED_ELEMENT * self.size / stretches)

    def _what_moves(self, block: _Block, *, first: bool, last: bool) -> list[_Moved]:
        """The arrays that `_move` fills: the keys, if they are read, and the elements that move with them."""
        text, types = block.text, self.moving

        def element_of_operand(pointer: Name) -> Callable[[Name, Expr], Expr]:
            return lambda t, number: pointer[block.place(t, first)]

        keeps_keys = self.keys_are_read or not last
        moves: list[_Moved] = []
        if keeps_keys:
            moves.append((text.output("k1", self.key_type, 0).pointer, False, lambda t, number: number))
        if self.packed:
            if not keeps_keys:
                out = text.output("out0", types[0], 0).pointer
                moves.append((out, True, lambda t, number: self._element(number)))
            return moves
        if self.indexed and first:
            sources: list[Callable[[Name, Expr], Expr]] = [lambda t, number: cast("uint32", t)]
        else:
            sources = [element_of_operand(text.operand(f"x{k}", t, k + 3).pointer) for k, t in enumerate(types)]
        for k, (kind, source) in enumerate(zip(types, sources, strict=True)):
            target = text.output(f"out{k}", kind, k + keeps_keys).pointer
            moves.append((target, last and not self.indexed, source))
        return moves

    def _find_places(
        self, block: _Block, item: Name, counts: Name, places: Name, later: Name, table: Expr, tables: int
    ) -> None:
        """Where in the row the block's first element of each digit goes. `table`: which of the block's `tables`."""
        writer, values = block.writer, 1 << self.digit_bits
        number = writer.assign("number_of_block", item - block.first_item)
        for array, start, stop in ((places, Number(0), number), (later, number, block.m1)):
            with writer.loop("v", values) as v:
                writer.store(array, v, cast("uint32", 0))
            with writer.loop("b", start, stop) as b, writer.loop("v", values) as v:
                at = (block.first_item + b) * (values * tables) + table * values + v
                count = counts[at]
                writer.store(array, v, cast("uint32", array[v] + count))
        total = writer.assign("total", cast("int64", 0))
        with writer.loop("v", values) as v:
            before = writer.assign("before", cast("int64", places[v]))
            among = writer.assign("among", before + cast("int64", later[v]))
            writer.store(places, v, cast("uint32", total + before))
            writer.augment(total, "+", among)

    def _gathered(self) -> EmittedKernel:
        """Copies the elements to where their numbers are."""
        block = _Block("sort_elements", self)
        number_of = block.text.operand("i0", self.key_type if self.packed else ElementType.U32, 0).pointer
        types = [self.types[k] for k in self.carried]
        sources = [block.text.operand(f"x{k}", t, k + 1).pointer for k, t in enumerate(types)]
        targets = [block.text.output(f"out{k}", t, k).pointer for k, t in enumerate(types)]
        with block.items(), block.elements() as t:
            found = number_of[block.place(t)]
            number = block.writer.assign("number", cast("int64", cast("uint32", found) if self.packed else found))
            for source, target in zip(sources, targets, strict=True):
                block.writer.store(target, block.place(t, True), source[block.place(number, True)])
        return block.finish()

    def _unpacked(self) -> EmittedKernel:
        """Takes the elements that moved with their keys out of the words."""
        block = _Block("sort_elements", self)
        keyed = block.text.operand("k0", self.key_type, 0).pointer
        out = block.text.output("out", self.moving[0], 0).pointer
        with block.items(), block.elements() as t:
            block.writer.store(out, block.place(t, True), self._element(keyed[block.place(t)]))
        return block.finish()

    def _elements(self, key: SortKey, operand: int) -> EmittedKernel:
        """Computes the elements of an operand from their keys."""
        block = _Block("sort_elements", self)
        keyed = block.text.operand("k0", self.key_type, 0).pointer
        out = block.text.output("out", self.types[operand], 0).pointer
        with block.items(), block.elements() as t:
            block.writer.store(out, block.place(t, True), element_of(key, self._key(keyed[block.place(t)])))
        return block.finish()

    def _restored(self, key: SortKey, operand: int) -> EmittedKernel:
        """Puts zeros and NaN back in their original order, if the row has some that their keys do not stand for."""
        sorter = RowSorter(
            "sort_merged", self.comparator, [self.types[operand]], self.dimensions, self.axis,
            [self.key_type, ElementType.S64],
        )  # fmt: skip
        keyed, odd = (w.pointer for w in sorter.work)
        blocks = sorter.text.argument("blocks", self.blocks)
        writer = sorter.writer
        with sorter.row() as (_, row):
            others = writer.assign("others", cast("int64", 0))
            with writer.loop("b", blocks) as b:
                writer.augment(others, "+", odd[row * blocks + b])
            first = writer.assign("first", row * sorter.n0)
            with writer.if_(others > 0, guarded=True):
                restore_merged(sorter, key, lambda t: self._key(keyed[first + t]))
        return sorter.finish()


class _Block:
    """A kernel over the blocks of all rows. In it, `base` is the offset of the row in scratch memory, and the block has
    the row's elements from `start` to before `stop`."""

    def __init__(self, name: str, sort: LongSort, computation: HloComputation | None = None, blocks: int = 0) -> None:
        """`blocks`: how many a row has, if not as many as the sort's."""
        self.blocks: int = blocks or sort.blocks
        self.text = KernelText(name) if computation is None else KernelText(name, computation)
        self.writer, self.sort = self.text.writer, sort
        self.n0 = self.text.argument("n0", sort.size)
        self.m0 = self.text.argument("m0", -(-sort.size // self.blocks))
        self.m1 = self.text.argument("m1", self.blocks)
        self.digits = Digits(self.writer, CAST[sort.key_type], sort.digit_bits, sort._lowest)
        self._stride: Name | None = None

    @contextmanager
    def items(self) -> Iterator[Name]:
        """The loop over blocks; gives the number of the block among the blocks of all rows."""
        writer = self.writer
        with writer.loop("item", LO, HI) as item:
            self.row = writer.assign("row", item // self.m1)
            self.first_item = writer.assign("first", self.row * self.m1)
            self.base = writer.assign("base", self.row * self.n0)
            self.start = writer.assign("start", minimum((item - self.first_item) * self.m0, self.n0))
            self.stop = writer.assign("stop", minimum(self.start + self.m0, self.n0))
            yield item

    @contextmanager
    def elements(self) -> Iterator[Name]:
        """The loop over the block's elements."""
        with self.writer.loop("t", self.start, self.stop) as t:
            yield t

    def place(self, t: Expr, given: bool = False) -> Expr:
        """The offset of an element of the row: in scratch memory, or (`given`) in the operands and results."""
        if not given or self.sort.stride == 1:
            return self.base + t
        if self._stride is None:
            self._stride = self.text.argument("n1", self.sort.stride)
        n1 = self._stride
        return self.row // n1 * (n1 * self.n0) + self.row % n1 + t * n1

    def move(self, number: Name, digit: Expr, places: Name, moves: Sequence[_Moved], t: Name) -> None:
        """Move element t to the next place of its digit."""
        place = self.digits.next_place(places, digit)
        for target, given, value in moves:
            self.writer.store(target, self.place(place, given), value(t, number))

    def first_from(self, starts: Name, least: Name) -> Name:
        """The first bucket that begins at `least` or later; the number of buckets if none does."""
        writer, bits = self.writer, self.sort.digit_bits
        found = writer.assign(writer.fresh("bucket"), cast("int64", 0))
        for bit in reversed(range(bits + 1)):
            before = cast("int64", starts[minimum(found + ((1 << bit) - 1), Number((1 << bits) - 1))])
            moves = (found + (1 << bit) <= Number(1 << bits)) & (before < least)
            writer.augment(found, "+", cast("int64", moves) * (1 << bit))
        return found

    def uppermost(self, bits: Name) -> Expr:
        """The bit at which the uppermost digit begins in which elements with these different bits differ."""
        most = self.sort.key_type.byte_width * 8 - self.sort.digit_bits
        return maximum(Number(most) - cast("int64", call("clz", bits)), Number(self.sort._lowest))

    def differs(self, differing: Name, shift: Expr) -> Expr:
        """Whether some elements of the row differ in the digit that begins at a bit."""
        return self.digits.of(self.differing(differing), shift) > 0

    def differing(self, differing: Name) -> Name:
        """The bits in which some elements of the row differ."""
        writer = self.writer
        bits = writer.assign("bits", cast(CAST[self.sort.key_type], 0))
        with writer.loop("b", self.m1) as b:
            here = differing[self.first_item + b]
            writer.assign(bits, cast(CAST[self.sort.key_type], call("bit_or", bits, here)))
        return bits

    def tables(self) -> Name:
        """The memory of `count`."""
        return self.writer.local_array("tables", _TABLES << self.sort.digit_bits, "uint32")

    def count(self, keyed: Name, shift: Expr, tables: Name, counts: Name, item: Name) -> None:
        """Count how often the digit that begins at bit `shift` has each value in the block."""
        writer, values = self.writer, 1 << self.sort.digit_bits
        with writer.loop("v", _TABLES * values) as v:
            writer.store(tables, v, cast("uint32", 0))
        whole = writer.assign("whole", self.stop - (self.stop - self.start) % _TABLES)
        with writer.loop("t", self.start, whole, step=_TABLES) as t:
            for table in range(_TABLES):
                at = self.digits.of(keyed[self.place(t + table if table else t)], shift)
                self.digits.add(tables, Binary("+", at, Number(table * values)))
        with writer.loop("t", whole, self.stop) as t:
            self.digits.add(tables, self.digits.of(keyed[self.place(t)], shift))
        with writer.loop("v", values) as v:
            total: Expr = tables[v]
            for table in range(1, _TABLES):
                total = total + tables[v + table * values]
            writer.store(counts, item * values + v, cast("uint32", total))

    def finish(self, cost: float | None = None) -> EmittedKernel:
        """The kernel of all blocks. `cost`: nanoseconds of one."""
        return self.text.finish(self.sort.rows * self.blocks, cost)


def _bits_of(element: ElementType, value: Expr) -> Expr:
    """An element of 32 bits as an integer."""
    return call("bitcast_f32_s32", value) if element is ElementType.F32 else value


def _bits(key: SortKey, value: Expr) -> Expr:
    """An element as it is stored in memory, as an integer."""
    names = {ElementType.F32: "bitcast_f32_s32", ElementType.F64: "bitcast_f64_s64"}
    name = names.get(key.element_type)
    return value if name is None else call(name, value)


def long_sort_of(instruction: HloInstruction, threads: int, read: Collection[int]) -> LongSort | None:
    """The kernels of a sort of one long row, or of several that do not keep so many threads busy, if the comparator
    compares keys; None for others. `read`: the results that something reads."""
    shape, attributes = instruction.operands[0].shape, instruction.attributes
    size = shape.dimensions[attributes.dimension]
    keys = keys_of(attributes.to_apply)
    if keys is None or size < LEAST or shape.num_elements >= 1 << 31:
        return None
    rows = shape.num_elements // size
    if rows > 1 and 2 * rows > threads:
        return None
    types = [o.shape.element for o in instruction.operands]
    return LongSort(attributes.to_apply, keys, types, shape.dimensions, attributes.dimension, threads, read)

"""Sorting rows by integer keys: digit by digit, from the least significant one, with a stable pass for each.

    for i in <rows>:
        for t in range(n0):
            k0[source + t] = <key of element t>
        ...                                             how often each digit occurs, for all digits at once
        for digit in range(3):
            ...                                         where the elements of each digit begin
            for t in range(n0):
                to = target + <the next place of the digit>
                k0[to] = k0[source + t]                 keys, and with them the elements as they lie in memory
                w0[to] = w0[source + t]
            source, target = target, source

`digits.py` has the passes that count digits and find places.

Several keys are sorted one after the other, the least significant first. Digits in which all elements agree are
skipped. A single operand that is its own key is not moved: it is computed from the keys at the end. If the key loses
which zero or NaN an element was, these elements are put back in their original order.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Expr, Name
from ..loops.writer import cast
from .digits import Digits
from .element import CAST
from .scalar_computations import KernelText
from .sort import RowSorter
from .sort_keys import SortKey, element_of, integer_key, is_own_key, keys_of, zero_of

LEAST_PER_DIGIT = 8
"""A row shorter than this for each digit (of 8 bits) is merged faster."""
_WIDE_DIGITS_FROM = 8192


class RadixSort(RowSorter):
    """The kernel that sorts rows by `keys`."""

    def __init__(
        self, comparator: HloComputation, keys: tuple[SortKey, ...], types: list[ElementType],
        dimensions: tuple[int, ...], axis: int,
    ) -> None:  # fmt: skip
        self.keys = keys
        size = dimensions[axis]
        self.digit_bits = 11 if size >= _WIDE_DIGITS_FROM else 8
        self.digits: int = max(map(self._digits_of, keys))
        self.keys_only: bool = is_own_key(keys, len(types))
        key_type = ElementType.U64 if any(key.bits == 64 for key in keys) else ElementType.U32
        carried = [] if self.keys_only else types
        super().__init__("radix_sort", comparator, types, dimensions, axis, [key_type, ElementType.U32, *carried])
        self._cast = CAST[key_type]
        self._digits = Digits(self.writer, self._cast, self.digit_bits)
        self.keyed, self.counted = self.work[0].pointer, self.work[1].pointer
        """The memory of the keys, and of the counts of their digits."""

    def scratch(self) -> list[tuple[ElementType, int]]:
        """Types and numbers of elements: for each group, two rows of keys and of the arrays that move with them, and
        the counts of the digits."""
        counts = self.groups * (self.digits << self.digit_bits)
        rows = [(w.element_type, 2 * self.groups * self.size) for w in self.work]
        return [rows[0], (ElementType.U32, counts), *rows[2:]]

    def emit(self) -> EmittedKernel:
        writer, n0, carried = self.writer, self.n0, self.work[2:]
        with self.row() as (group, _):
            source = writer.assign("source", group * 2 * n0)
            target = writer.assign("target", source + n0)
            counts = writer.assign("counts", group * (self.digits << self.digit_bits))
            if carried:
                with writer.loop("t", n0) as t:
                    for x, w in zip(self.inputs, carried, strict=True):
                        writer.store(w.pointer, source + t, x.pointer[self.offset(t)])
            for key in reversed(self.keys):
                self._fill(key, source, counts)
                self._distribute(key, source, target, counts)
            if self.keys_only:
                self._compute(self.keys[0], source)
            else:
                with writer.loop("t", n0) as t:
                    for out, w in zip(self.outputs, carried, strict=True):
                        writer.store(out.pointer, self.offset(t), w.pointer[source + t])
        return self.finish()

    def _key(self, key: SortKey, source: Name, position: Expr) -> Expr:
        """The key of the element at a position of the row in its current order."""

        def element(operand: int) -> Expr:
            if self.keys_only:
                return self.element(self.inputs[operand], self.offset(position))
            return self.element(self.work[2 + operand], source + position)

        return key_at(self.text, key, element)

    def _fill(self, key: SortKey, source: Name, counts: Name) -> None:
        """Compute the keys, then count their digits: two loops; the first handles several elements at a time."""
        writer, n0, k = self.writer, self.n0, self.keyed
        with writer.loop("t", n0) as t:
            writer.store(k, source + t, cast(self._cast, self._key(key, source, t)))
        self._digits.count(lambda t: k[source + t], (n0,), self._digits_of(key), self.counted, counts)

    def _digits_of(self, key: SortKey) -> int:
        return -(-key.bits // self.digit_bits)

    def _distribute(self, key: SortKey, source: Name, target: Name, counts: Name) -> None:
        digits, writer, n0, k, h = self._digits, self.writer, self.n0, self.keyed, self.counted
        with writer.loop("digit", self._digits_of(key)) as digit:
            shift = writer.assign("shift", digit * digits.bits)
            table = writer.assign("table", counts + (digit << digits.bits))
            with writer.if_(cast("int64", h[table + digits.of(k[source], shift)]) < n0):
                digits.find_places(h, table)
                with writer.loop("t", n0) as t:
                    number = writer.assign("number", k[source + t])
                    to = writer.assign("to", target + digits.next_place(h, table + digits.of(number, shift)))
                    writer.store(k, to, number)
                    for w in self.work[2:]:
                        writer.store(w.pointer, to, w.pointer[source + t])
                self.swap(source, target)

    def _compute(self, key: SortKey, source: Name) -> None:
        """Compute the elements from their keys."""
        with self.writer.loop("t", self.n0) as t:
            self.writer.store(self.outputs[0].pointer, self.offset(t), element_of(key, self.keyed[source + t]))
        if key.merges_values:
            restore_merged(self, key, lambda t: self.keyed[source + t])


def key_at(text: KernelText, key: SortKey, element: Callable[[int], Expr]) -> Expr:
    """The key of one position; `element` gives an operand's element there."""
    elements, writer = text.elements, text.writer
    users = elements.computation.users
    with writer.forgetting():
        for parameter in elements.computation.parameters:
            if parameter.attributes.number % 2 == 0:
                value = element(parameter.attributes.number // 2)
                writer.know(parameter, writer.let("v", value) if len(users[parameter]) > 1 else value)
        return integer_key(key, elements.value(key.value, ()))


def restore_merged(sorter: RowSorter, key: SortKey, number: Callable[[Expr], Expr]) -> None:
    """Zeros and NaN that the key does not tell apart are put back in their original order, after the row's elements
    were computed from their keys. `number(t)`: the key of element t, in any order."""
    writer, n0, x, out = sorter.writer, sorter.n0, sorter.inputs[0], sorter.outputs[0].pointer
    constants = key.canonical_constants
    if constants is None:
        marks = [zero_of(key)]
    else:
        marks = [sorter.text.elements.value(constant, ()) for constant in constants]
    merged = []
    """For zeros, and for NaN: how many elements come before them, and their key."""
    for name, mark in zip(("zeros", "nans"), marks, strict=False):
        before = writer.assign(name, cast("int64", 0))
        merged.append((before, writer.assign(f"first_of_{name}", integer_key(key, mark))))
    some = writer.assign("some", cast("int64", 0))
    with writer.loop("t", n0) as t:
        one = writer.assign("number", number(t))
        for before, first in merged:
            writer.augment(before, "+", cast("int64", one < first))
            writer.augment(some, "+", cast("int64", one.eq(first)))
    with writer.if_(some > 0), writer.loop("t", n0) as t:
        value = writer.let("v", sorter.element(x, sorter.offset(t)))
        for (position, _), test in zip(merged, (value.eq(marks[0]), value.ne(value)), strict=False):
            with writer.if_(test):
                writer.store(out, sorter.offset(position), x.pointer[sorter.offset(t)])
                writer.augment(position, "+", 1)


def radix_sort_of(instruction: HloInstruction) -> RadixSort | None:
    """The kernel for a sort with a comparator that compares keys; None for others, or if rows are too short for a
    gain."""
    shape, attributes = instruction.operands[0].shape, instruction.attributes
    size = shape.dimensions[attributes.dimension]
    keys = keys_of(attributes.to_apply)
    if keys is None or not LEAST_PER_DIGIT * sum(-(-key.bits // 8) for key in keys) <= size < 1 << 31:
        return None
    types = [o.shape.element for o in instruction.operands]
    return RadixSort(attributes.to_apply, keys, types, shape.dimensions, attributes.dimension)

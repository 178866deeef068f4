"""Sorting rows by integer keys: digit by digit, from the least significant one, with a stable pass for each.

    for i in <rows>:
        for t in range(n0):
            k0[source + t] = <key of element t>
            h0[...] += 1                                how often each digit occurs, for all digits at once
        for digit in range(3):
            ...                                         where the elements of each digit begin
            for t in range(n0):
                place = target + h0[...]
                k0[place] = k0[source + t]              keys, and with them the elements as they lie in memory
                w0[place] = w0[source + t]
            source, target = target, source

Several keys are sorted one after the other, the least significant first. Digits in which all elements agree are
skipped. A single operand that is its own key is not moved: it is computed from the keys at the end. If the key loses
which zero or NaN an element was, these elements are put back in their original order.
"""

from __future__ import annotations

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from .element import CAST
from .sort import RowSorter
from .sort_keys import SortKey, element_of, integer_key, keys_of
from .source import EmittedKernel, Expr, PointerParameter

LEAST_PER_DIGIT = 8
"""A row shorter than this for each digit (of 8 bits) is merged faster."""
_WIDE_DIGITS_FROM = 8192

_PASS_NANOSECONDS = 2.0


class RadixSort(RowSorter):
    """The kernel that sorts rows by `keys`."""

    def __init__(
        self, comparator: HloComputation, keys: tuple[SortKey, ...], types: list[ElementType],
        dimensions: tuple[int, ...], axis: int,
    ) -> None:  # fmt: skip
        self.keys = keys
        size = dimensions[axis]
        self.digit_bits = 11 if size >= _WIDE_DIGITS_FROM else 8
        self.digits = max(-(-key.bits // self.digit_bits) for key in keys)
        self.keys_only = len(types) == 1 and len(keys) == 1 and keys[0].operand == 0 and keys[0].is_invertible
        key_type = ElementType.U64 if any(key.bits == 64 for key in keys) else ElementType.U32
        carried = [] if self.keys_only else types
        super().__init__(comparator, types, dimensions, axis, [key_type, ElementType.U32, *carried])
        self._cast = CAST[key_type]
        self.outputs = [PointerParameter(f"out{k}", t, None, k) for k, t in enumerate(types)]

    def scratch_bytes(self) -> list[int]:
        """For each group, two rows of keys and of the arrays that move with them, and the counts of the digits."""
        groups = self.groups
        counts = groups * (self.digits << self.digit_bits) * 4
        nbytes = [2 * groups * self.size * w.element_type.byte_width for w in self.work]
        return [nbytes[0], counts, *nbytes[2:]]

    def emit(self) -> EmittedKernel:
        carried = self.work[2:]
        with self.row():
            self.line("source = group * 2 * n0", "target = source + n0")
            self.line(f"counts = group * {self.digits << self.digit_bits}")
            if carried:
                with self.writer.block("for t in range(n0):"):
                    for x, w in zip(self.inputs, carried, strict=True):
                        self.line(f"{w.name}[source + t] = {x.name}[{self.at('t')}]")
            for key in reversed(self.keys):
                self._fill(key)
                self._distribute(key)
            if self.keys_only:
                self._restore(self.keys[0])
            else:
                with self.writer.block("for t in range(n0):"):
                    for out, w in zip(self.outputs, carried, strict=True):
                        self.line(f"{out.name}[{self.at('t')}] = {w.name}[source + t]")
        passes = sum(-(-key.bits // self.digit_bits) + 1 for key in self.keys)
        return self.finish("radix_sort", self.size * (passes + 1) * _PASS_NANOSECONDS + 200.0 * passes)

    def _key(self, key: SortKey, position: str) -> Expr:
        """The key of the element at a position of the row in its current order."""
        scope = self.writer.scope
        outside = dict(scope.values)
        for parameter in self.elements.computation.parameters:
            if parameter.attributes.number % 2 == 0:
                operand = parameter.attributes.number // 2
                if self.keys_only:
                    element = self.element(self.inputs[operand], self.at(position))
                else:
                    element = self.element(self.work[2 + operand], f"source + {position}")
                scope.values[(parameter, ())] = self._named(element, parameter)
        number = integer_key(key, self.elements.value(key.value, ()))
        scope.values = outside
        return number

    def _named(self, element: Expr, parameter: HloInstruction) -> Expr:
        used = len(self.elements.computation.users[parameter])
        return self.writer.let("v", element) if used > 1 else element

    def _fill(self, key: SortKey) -> None:
        """Compute the keys, then count their digits: two loops; the first handles several elements at a time."""
        digits, bits = -(-key.bits // self.digit_bits), self.digit_bits
        k, h = self.work[0].name, self.work[1].name
        with self.writer.block("for t in range(n0):"):
            number = self._key(key, "t")
            self.line(f"{k}[source + t] = {self._cast}({number})")
        with self.writer.block(f"for t in range({digits << bits}):"):
            self.line(f"{h}[counts + t] = uint32(0)")
        with self.writer.block("for t in range(n0):"):
            for digit in range(digits):
                self.line(f"at = counts + {digit << bits} + {self._digit(f'{k}[source + t]', str(digit * bits))}")
                self.line(f"{h}[at] = uint32({h}[at] + 1)")

    def _digit(self, number: str, shift: str) -> str:
        shifted = number if shift == "0" else f"shr_logical({number}, {self._cast}({shift}))"
        return f"(int64({shifted}) & {(1 << self.digit_bits) - 1})"

    def _distribute(self, key: SortKey) -> None:
        digits, bits = -(-key.bits // self.digit_bits), self.digit_bits
        k, h = self.work[0].name, self.work[1].name
        with self.writer.block(f"for digit in range({digits}):"):
            self.line(f"shift = digit * {bits}", f"table = counts + (digit << {bits})")
            first = self._digit(f"{k}[source]", "shift")
            with self.writer.block(f"if int64({h}[table + {first}]) < n0:"):
                self.line("total = int64(0)")
                with self.writer.block(f"for t in range({1 << bits}):"):
                    self.line(f"count = int64({h}[table + t])", f"{h}[table + t] = uint32(total)", "total += count")
                with self.writer.block("for t in range(n0):"):
                    self.line(f"number = {k}[source + t]", f"at = table + {self._digit('number', 'shift')}")
                    self.line(f"before = int64({h}[at])", f"{h}[at] = uint32(before + 1)", "place = target + before")
                    self.line(f"{k}[place] = number")
                    for w in self.work[2:]:
                        self.line(f"{w.name}[place] = {w.name}[source + t]")
                self.line("other = source", "source = target", "target = other")

    def _restore(self, key: SortKey) -> None:
        """Compute the elements from their keys."""
        out, k = self.outputs[0].name, self.work[0].name
        with self.writer.block("for t in range(n0):"):
            self.line(f"{out}[{self.at('t')}] = {element_of(key, f'{k}[source + t]')}")
        if not key.merges_values:
            return
        constants = key.canonical_constants
        if constants is None:
            marks = [Expr("float64(0)" if key.element_type is ElementType.F64 else "float32(0)", self.writer.depth)]
        else:
            marks = [self.elements.value(constant, ()) for constant in constants]
        merged = dict(zip(("zeros", "nans"), marks, strict=False))
        for name, mark in merged.items():
            self.line(f"{name} = int64(0)", f"first_of_{name} = {integer_key(key, mark)}")
        self.line("some = int64(0)")
        with self.writer.block("for t in range(n0):"):
            for name in merged:
                self.line(f"{name} += int64({k}[source + t] < first_of_{name})")
                self.line(f"some += int64({k}[source + t] == first_of_{name})")
        x = self.inputs[0]
        with self.writer.block("if some > 0:"), self.writer.block("for t in range(n0):"):
            value = self.writer.let("v", self.element(x, self.at("t")))
            for name in merged:
                test = f"{value} == {marks[0]}" if name == "zeros" else f"{value} != {value}"
                with self.writer.block(f"if {test}:"):
                    self.line(f"{out}[{self.at(name)}] = {x.name}[{self.at('t')}]", f"{name} += 1")


def radix_sort_of(instruction: HloInstruction) -> RadixSort | None:
    """The kernel for a sort whose comparator compares keys; None for others, or if rows are too short for a gain."""
    shape, attributes = instruction.operands[0].shape, instruction.attributes
    size = shape.dimensions[attributes.dimension]
    keys = keys_of(attributes.to_apply)
    if keys is None or not LEAST_PER_DIGIT * sum(-(-key.bits // 8) for key in keys) <= size < 1 << 31:
        return None
    types = [o.shape.element for o in instruction.operands]
    return RadixSort(attributes.to_apply, keys, types, shape.dimensions, attributes.dimension)

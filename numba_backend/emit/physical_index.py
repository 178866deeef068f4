"""The index function of an array that is not row-major, as expressions, and loops that run tile by tile.

A loop nest over f32[m,n]{1,0:T(8,128)} follows the physical order of the buffer, and knows the digits of its index::

    for tile in range(lo, hi):
        j_0 = tile % m0
        i_0 = tile // m0
        for i_1 in range(minimum(8, n0 - i_0 * 8)):
            i = i_0 * 8 + i_1
            for j_1 in range(minimum(128, n1 - j_0 * 128)):
                j = j_0 * 128 + j_1
                out[((i_0 * m0 + j_0) * 8 + i_1) * 128 + j_1] = ...

Code that then asks for ``j % 128`` gets ``j_1``; for an index without such a loop, the digits are computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.support.permutations import inverse
from ...hlo.support.records import dataclass
from ..loops.expressions import ZERO, Binary, Expr, Number, call, is_number
from ..loops.writer import Writer
from .physical_layouts import Digit, PhysicalLayout
from .sizes import Index, Sizes


@dataclass(frozen=True, slots=True)
class ElementAddress:
    """Where an element is: its offset; if several elements share the byte there, also the number of bits below it."""

    offset: Expr
    shift: Expr | None = None


@dataclass(frozen=True, slots=True)
class WordPart:
    """One of `count` elements that fill a word and are written one after the other: its number is `number`, and
    `component` is its index."""

    component: Expr
    count: int
    number: int


class PhysicalIndex:
    """Emits places into a kernel."""

    def __init__(self, writer: Writer, sizes: Sizes) -> None:
        self._writer = writer
        self._sizes = sizes
        self.part: WordPart | None = None
        """The element that an unrolled loop is writing now."""

    def address(self, place: PhysicalLayout | None, instruction: HloInstruction, index: Index) -> ElementAddress:
        """Where the element of `instruction` at `index` is."""
        if place is None:
            return ElementAddress(self._sizes.offset(instruction, index))
        if not place.packed_bits:
            return ElementAddress(self._number(place.digits, instruction, index))
        return self._in_a_word(place, instruction, index) or self._in_a_byte(place, instruction, index)

    def _in_a_byte(self, place: PhysicalLayout, instruction: HloInstruction, index: Index) -> ElementAddress:
        """The first element in a byte has the lowest bits."""
        offset = self._number(place.digits, instruction, index)
        if not offset.is_simple:
            offset = self._writer.let("at", offset)
        count = 8 // place.packed_bits
        return ElementAddress(offset // count, Binary("*", offset % count, Number(place.packed_bits)))

    def _in_a_word(self, place: PhysicalLayout, instruction: HloInstruction, index: Index) -> ElementAddress | None:
        """The same for one of several elements that fill whole bytes: its byte and bits in the word are constants."""
        part, bits = self.part, place.packed_bits
        if part is None or part.count * bits % 8 or not place.digits:
            return None
        last = place.digits[-1]
        if not isinstance(last.source, int) or last.divisor != 1:
            return None
        if index[last.source] != part.component:
            return None
        if place.is_linear:
            word = self.digit(part.component, part.count, None)
        elif last.modulus == last.extent and last.extent % part.count == 0:
            words = last.extent // part.count
            word = self._number(place.digits[:-1], instruction, index) * words
            word += ZERO if words == 1 else self.digit(part.component, part.count, words)
        else:
            return None
        byte = word * (part.count * bits // 8) + part.number * bits // 8
        return ElementAddress(byte, Number(part.number * bits % 8))

    def know(self, component: Expr, divisor: int, modulus: int | None, value: Expr) -> None:
        """Records that ``(component // divisor) % modulus`` is `value` in the scope that is open."""
        self._writer.know(("digit", component, divisor, modulus), value)

    def _number(self, digits: Sequence[Digit], instruction: HloInstruction, index: Index) -> Expr:
        result: Expr = ZERO
        for k, digit in enumerate(digits):
            if k:
                result = result * self.extent(instruction, digit)
            result = result + self._value(digit, instruction, index)
        return result

    def extent(self, instruction: HloInstruction, digit: Digit) -> Expr:
        """How many values a digit of the index of `instruction` has."""
        if digit.is_tile:
            return Number(digit.extent)
        return self._sizes.extent(instruction, tuple(digit.dimensions()), digit.divisor, digit.extent)

    def _value(self, digit: Digit, instruction: HloInstruction, index: Index) -> Expr:
        if isinstance(digit.source, int):
            whole = index[digit.source]
        elif digit.is_zero:
            return ZERO
        else:
            whole = self._number(digit.source, instruction, index)
        return self.digit(whole, digit.divisor, digit.modulus)

    def digit(self, whole: Expr, divisor: int, modulus: int | None) -> Expr:
        """``(whole // divisor) % modulus``, computed once in each scope."""
        if (divisor == 1 and modulus is None) or is_number(whole, 0):
            return whole
        key = ("digit", whole, divisor, modulus)
        found = self._writer.recall(key)
        if found is None:
            value = whole if divisor == 1 else whole // divisor
            if modulus is not None:
                value = value % modulus
            found = self._writer.let("digit", value)
            self._writer.remember(key, found)
        return found


@dataclass(frozen=True, slots=True)
class LoopDigit:
    """A loop over one digit of one dimension's index."""

    dimension: int
    divisor: int
    modulus: int | None
    in_words: bool = False
    """The most minor digit of a place, but not the innermost loop: it counts the rows of elements in one word."""


def loop_digits(
    place: PhysicalLayout, where: Sequence[int], rank: int, besides: Collection[int] = ()
) -> tuple[LoopDigit, ...]:
    """The loops, outermost first, that go through an array in its physical order. Dimension d of the array is dimension
    `where[d]` of the loops' domain. First come the dimensions of the domain that the array lacks, the dimensions with
    digits that do not make up an index, and the dimensions in `besides`.
    """
    splits = {where[d]: place.splits(d) for d in range(len(where)) if where[d] not in besides}
    split = {d for d, digits in splits.items() if digits}
    found = [LoopDigit(d, 1, None) for d in range(rank) if d not in split]
    own = [(where[d.source], d) for d in place.digits if isinstance(d.source, int)]
    found += [LoopDigit(n, digit.divisor, digit.modulus) for n, digit in own if n in split]
    if not found:
        return ()
    rows = found.pop()
    words: list[LoopDigit] = []
    if place.packed_bits and rows.modulus and rows.modulus > SHORT and rows.modulus % SHORT == 0:
        words.append(LoopDigit(rows.dimension, SHORT * rows.divisor, rows.modulus // SHORT))
        rows = replace(rows, modulus=SHORT)
    long_row = len(place.digits) > 1 and place.digits[-2].extent > SHORT
    if found and rows.dimension != found[-1].dimension and 0 < (rows.modulus or 0) <= SHORT and long_row:
        return (*found[:-1], *words, replace(rows, in_words=True), found[-1])
    return (*found, *words, rows)


SHORT = 8
"""A loop of so few iterations is not the innermost one: it counts the rows that (8,128)(4,1) packs into words. If a
word has more rows, as with single bits, the loop is split, and this is the length of its inner part."""


class TileLoops:
    """Opens the loops of some dimensions of a domain, in the order of `digits`, and records the digits they give."""

    def __init__(
        self, places: PhysicalIndex, writer: Writer, sizes: Sizes, domain: HloInstruction, digits: Sequence[LoopDigit],
        names: Mapping[int, str],
    ) -> None:  # fmt: skip
        """`names`: the name of each dimension's index."""
        self._places, self._writer, self._sizes = places, writer, sizes
        self._domain, self._digits, self._names = domain, digits, names
        self._values: dict[int, list[tuple[LoopDigit, Expr]]] = {}
        self._indices: dict[int, Expr] = {}

    def count(self, digit: LoopDigit) -> Expr:
        """How many values the first digit of a dimension has."""
        assert digit.modulus is None
        if digit.divisor == 1:
            return self._sizes.of(self._domain, digit.dimension)
        return self._sizes.extent(self._domain, (digit.dimension,), digit.divisor, self.number(digit))

    def number(self, digit: LoopDigit) -> int:
        """The same, as a Python number."""
        return -(-self._domain.shape.dimensions[digit.dimension] // digit.divisor)

    @contextmanager
    def over(self, digits: Sequence[LoopDigit]) -> Iterator[None]:
        """Nested loops over these digits."""
        with ExitStack() as stack:
            for digit in digits:
                loop = self._writer.neighbours(self.name(digit), self._bound(digit), registers=())
                self.set(digit, stack.enter_context(loop))
            yield

    def unrolled(self, digits: Sequence[LoopDigit]) -> LoopDigit | None:
        """The loop over the rows that a tile packs into words, if every word has all its rows. It is unrolled inside
        the loop along the row, so that LLVM can write whole words::

            for j_1 in range(minimum(128, n1 - j_0 * 128)):
                j = j_0 * 128 + j_1
                row0 = i_0 * 8 + i_1 * 2
                out[... * 2] = x0[row0 * n1 + j]
                row1 = i_0 * 8 + i_1 * 2 + 1
                out[... * 2 + 1] = x0[row1 * n1 + j]
        """
        for digit in digits:
            if digit.in_words and digit.divisor == 1 and digit.modulus is not None:
                full = self._domain.shape.dimensions[digit.dimension] % digit.modulus == 0
                return digit if full else None
        return None

    @contextmanager
    def word_part(self, digit: LoopDigit, number: int) -> Iterator[None]:
        """The body of the unrolled loop for one value of its digit."""
        assert digit.modulus is not None
        self.set(digit, Number(number), f"row{number}")
        self._places.part = WordPart(self.index(digit.dimension), digit.modulus, number)
        yield
        self._places.part = None

    def let(self, digit: LoopDigit, value: Expr) -> None:
        """Names the value of a digit that is computed in the scope that is open."""
        self.set(digit, self._writer.assign(self.name(digit), value))

    def set(self, digit: LoopDigit, value: Expr, name: str = "") -> None:
        """Sets the value of a digit in the open scope. The last digit of a dimension gives the whole index, named
        `name` or like the dimension's name."""
        known = self._values.setdefault(digit.dimension, [])
        known[:] = [(d, v) for d, v in known if d.divisor > digit.divisor]  # the rest belongs to a closed loop
        known.append((digit, value))
        if digit.divisor == 1 and len(known) > 1:
            component = self._writer.assign(name or self._names[digit.dimension], self._base(digit.dimension, 0))
            self._indices[digit.dimension] = component
            for part, own in known:
                self._places.know(component, part.divisor, part.modulus, own)
            if digit.in_words and digit.modulus is not None:
                self._places.know(component, digit.modulus, None, self._base(digit.dimension, 1, digit.modulus))

    def index(self, dimension: int) -> Expr:
        """The index of a dimension; all its loops must be open."""
        known = self._values[dimension]
        return known[0][1] if len(known) == 1 else self._indices[dimension]

    def name(self, digit: LoopDigit) -> str:
        """The name of the loop's variable: the index's name, with the digit's number if there are several."""
        name = self._names[digit.dimension]
        own = [d for d in self._digits if d.dimension == digit.dimension]
        return name if len(own) == 1 else f"{name}_{own.index(digit)}"

    def _base(self, dimension: int, divisor: int, unit: int = 1) -> Expr:
        """The part of the index from the digits more major than `divisor`, divided by `unit`."""
        result: Expr = ZERO
        for digit, value in self._values.get(dimension, ()):
            if digit.divisor > divisor:
                result = result + value * (digit.divisor // unit)
        return result

    def _bound(self, digit: LoopDigit) -> Expr:
        if digit.modulus is None:
            return self.count(digit)
        rest = self._sizes.of(self._domain, digit.dimension) - self._base(digit.dimension, digit.divisor)
        if digit.divisor > 1:
            rest = (rest + (digit.divisor - 1)) // digit.divisor
        return call("minimum", digit.modulus, rest)


def reached_parameters(
    starts: Sequence[tuple[HloInstruction, tuple[int, ...]]],
) -> Iterator[tuple[HloInstruction, tuple[int, ...]]]:
    """The parameters that some values depend on at the loops' index; for each, which dimensions of the loops its own
    dimensions are. Follows element-wise ops, transposes and broadcasts."""
    stack, seen = list(starts), set(starts)
    while stack:
        node, where = stack.pop()
        if node.opcode is Opcode.PARAMETER:
            yield node, where
            continue
        below: list[tuple[HloInstruction, tuple[int, ...]]] = []
        if node.opcode is Opcode.TRANSPOSE:
            below.append((node.operands[0], tuple([where[d] for d in inverse(node.attributes.dimensions)])))
        elif node.opcode is Opcode.BROADCAST:
            below.append((node.operands[0], tuple(where[d] for d in node.attributes.dimensions)))
        elif is_elementwise(node):
            below.extend((o, where) for o in node.operands if o.shape.rank == len(where))
        for item in below:
            if item not in seen:
                seen.add(item)
                stack.append(item)


def guide_of(
    starts: Sequence[tuple[HloInstruction, tuple[int, ...], PhysicalLayout | None]],
    parameters: Mapping[int, PhysicalLayout], rank: int,
) -> tuple[LoopDigit, ...]:  # fmt: skip
    """The loops of a nest over some values (each with the place where it is written, if any). They follow the first
    place, which is not row-major; without one, the largest parameter that is not row-major; () if all arrays are
    row-major, so that plain loops will do."""
    for _, where, place in starts:
        if place is not None:
            return loop_digits(place, where, rank)
    found: tuple[int, HloInstruction, tuple[int, ...]] | None = None
    for parameter, where in reached_parameters([(value, where) for value, where, _ in starts]):
        if parameter.attributes.number in parameters and len(set(where)) == len(where):
            size = parameter.shape.num_elements
            if found is None or size > found[0]:
                found = size, parameter, where
    if found is None:
        return ()
    return loop_digits(parameters[found[1].attributes.number], found[2], rank)


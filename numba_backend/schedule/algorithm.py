"""Describe a kernel's computation without an order of loops: no cache, no vector and no thread has a name here.

    c[i, j] = sum over p of a[i, p] * b[p, j]

    Algorithm("product", (Dimension("i", m), Dimension("j", n), Dimension("p", k, is_reduced=True)),
              operands=(Access("a", x0, (("i", a0), ("p", a1))), Access("b", x1, (("p", b0), ("j", b1)))),
              result=Access("c", out, (("i", n), ("j", ONE))), update=total + a * b, total_type="float32")

Extents and strides are expressions of the kernel's parameters, or literals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...hlo.support.records import dataclass
from ..loops.expressions import ONE, ZERO, Binary, Call, Expr, Name, Number, call, minimum, times
from ..loops.rewrite import rewritten
from ..loops.typing import pointee
from ..loops.writer import cast

TOTAL = "total"
"""The name of a sum in the expressions of an algorithm."""
FLIPPED = cast("uint32", 0x80808080)
"""The upper bits of four bytes."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A counter from 0 to `extent`."""

    name: str
    extent: Expr
    is_reduced: bool = False
    """It is summed over: the result has no such dimension."""


@dataclass(frozen=True, slots=True)
class Word:
    """How small elements are packed: several of one sum are a word of 32 bits, or each one is converted."""

    type: str
    """The type of a packed word."""
    dimension: str
    """The dimension of the sum, which counts words."""
    count: int = 1
    """How many elements a word has."""
    step: Expr = ONE
    """The distance of neighbours along the sum."""
    extent: Expr = ZERO
    """How many elements there are along the sum. Elements that the last word lacks are 0."""
    function: str = ""
    """It converts an element, if a word has one."""
    flips: bool = False
    """The upper bit of each byte is flipped."""


@dataclass(frozen=True, slots=True)
class Access:
    """The element of an array at the sum of stride times counter."""

    name: str
    pointer: Name
    strides: tuple[tuple[str, Expr], ...]
    """The strides by dimension, major to minor. A pointer is a table of the distances from the first element."""
    start: Expr = ZERO
    """The offset of the element at zeros."""
    word: Word | None = None

    def stride(self, dimension: str) -> Expr:
        """The distance between neighbours along a dimension; 0 where the array has no such dimension."""
        for name, stride in self.strides:
            if name == dimension:
                return stride
        return ZERO

    def with_neighbours(self, dimension: str) -> Access:
        """The same, where elements along the dimension are neighbours in memory."""
        strides = tuple((name, ONE if name == dimension else stride) for name, stride in self.strides)
        return replace(self, strides=strides)

    def table(self, dimension: str) -> Name | None:
        """The distances along a dimension, if they are no multiples of a stride."""
        stride = self.stride(dimension)
        return stride if isinstance(stride, Name) and stride.type.endswith("*") else None

    def has(self, dimension: str) -> bool:
        """Whether elements differ along the dimension."""
        return any(name == dimension for name, _ in self.strides)


@dataclass(frozen=True, slots=True)
class Lines:
    """A dimension of the result that goes along the rows of a larger array: an element's number has digits, and it is a
    result if each of them is small enough."""

    dimension: str
    digits: tuple[tuple[Expr, Expr], ...]
    """Major to minor: of so many elements the first so many are results. These are neighbours, row-major."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """``result = update(... update(update(zero, operands), operands) ...)`` over the reduced dimensions."""

    name: str
    dimensions: tuple[Dimension, ...]
    operands: tuple[Access, ...]
    result: Access
    update: Expr
    """The next sum, in the name `TOTAL` and the operands' names. All have the type of sums."""
    total_type: str
    zero: Expr
    """The initial value of a sum."""
    adds: bool | Name = False
    """The sum is added to the stored result; a parameter: if that is not 0."""
    lines: Lines | None = None
    stored: Expr | None = None
    """A sum, `TOTAL`, as an element of the result. None: it is cast."""
    with_subnormals: Expr | None = None
    """The next sum, if `update` takes subnormal numbers of bf16 for zeros."""

    def __str__(self) -> str:
        """``c[i, j] = sum over p: total + a[i, p] * b[p, j]``"""
        counters = [[name for name, _ in a.strides] for a in (*self.operands, self.result)]
        if self.lines:
            counters[-1].append(f"{self.lines.dimension} in lines")
        arrays = (*self.operands, self.result)
        elements = [f"{a.name}[{', '.join(names)}]" for a, names in zip(arrays, counters, strict=True)]
        update = put(self.update, {a.name: Name(e) for a, e in zip(self.operands, elements[:-1], strict=True)})
        return f"{elements[-1]} = sum over {', '.join(d.name for d in self.dimensions if d.is_reduced)}: {update}"

    def dimension(self, name: str) -> Dimension:
        """The dimension of this name."""
        return next(d for d in self.dimensions if d.name == name)

    def operand(self, name: str) -> Access:
        """The operand of this name."""
        return next(access for access in self.operands if access.name == name)

    def updated(self, total: Expr, elements: Mapping[str, Expr], any_order: bool = False) -> Expr:
        """The next sum, from one and the operands' elements. `any_order`: as a call that LLVM may reorder."""
        update = self.update
        if any_order:
            assert isinstance(update, Binary | Call) and len(update.parts) == 2, "a sum"
            update = call("reduce_add", *update.parts)
        return put(update, {TOTAL: total, **elements})

    def held(self, value: Expr) -> Expr:
        """An operand's element in the type of sums."""
        return value if value.type == self.total_type else cast(self.total_type, value)

    def packed(self, operand: Access, at: Expr, some: Expr | None = None) -> Expr:
        """The element of an operand at an offset, as it is packed, or the word that begins there. `some`: how many
        elements the word has; others are 0."""
        word, pointer = operand.word, operand.pointer
        if word is None:
            return self.held(pointer[at])
        if word.count == 1:
            return call(word.function, pointer[at])
        bits, found = 32 // word.count, self.zero
        for number in range(word.count):
            place = Number(number) if some is None else minimum(number, some - 1)
            value: Expr = cast("uint32", cast(f"uint{bits}", pointer[at + times(place, word.step)]))
            if some is not None:
                value = call("select", Number(number) < some, value, cast("uint32", 0))
            found = call("bit_or", found, call("shl", value, cast("uint32", number * bits))) if number else value
        return call("bit_xor", found, FLIPPED) if word.flips else found

    def finished(self, total: Expr) -> Expr:
        """A sum as an element of the result."""
        if self.stored is not None:
            return put(self.stored, {TOTAL: total})
        kind = pointee(self.result.pointer.type)
        return total if total.type == kind else cast(kind, total)


def put(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with other expressions in the places of names."""
    return rewritten(e, lambda part: values.get(part.name) if isinstance(part, Name) else None)

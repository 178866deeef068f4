"""Kernel text while it is written: scopes of lines, names, parameters.

A kernel is a function of `lo, hi`, pointers, sizes and scalars. Its text is canonical: names depend only on the order
in which the emitter meets things, not on names that a user or a file chose, so equal computations give equal text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...hlo.element_type import ElementType

ATOM, _UNARY, _COMPARISON, _NOT = 9, 8, 2, 1
_PRECEDENCE = {
    "*": 7, "/": 7, "//": 7, "%": 7, "+": 6, "-": 6, "&": 5, "^": 4, "|": 3,
    "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2,
}  # fmt: skip
"""How strongly Python's operators bind."""


@dataclass(frozen=True, slots=True)
class Expr:
    """A piece of kernel text and the depth of the innermost scope that it depends on."""

    text: str
    depth: int = 0
    precedence: int = ATOM
    """The precedence of the outermost operator of the text."""
    cast: str = ""
    """The type to which the value must still be cast: integer arithmetic is done in 64 bits, and further
    arithmetic does not need the upper bits."""

    def closed(self) -> Expr:
        """The value, cast to its own type."""
        return Expr(f"{self.cast}({self.text})", self.depth) if self.cast else self

    def within(self, precedence: int) -> str:
        """The text as an operand of an operator of this precedence, in parentheses if needed."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def __str__(self) -> str:
        return self.text


Index = tuple[Expr, ...]
"""One expression for each dimension."""

ZERO = Expr("0")


def binary(sign: str, a: Expr, b: Expr, cast: str = "") -> Expr:
    """``a + b``; operators of equal precedence are grouped from the left; comparisons are not chained."""
    own = _PRECEDENCE[sign]
    left = own + 1 if own == _COMPARISON else own
    return Expr(f"{a.within(left)} {sign} {b.within(own + 1)}", depth_of(a, b), own, cast)


def unary(sign: str, a: Expr, cast: str = "") -> Expr:
    """``-a``, ``not a``."""
    own = _NOT if sign == "not " else _UNARY
    return Expr(f"{sign}{a.within(own + 1)}", a.depth, own, cast)


def call(name: str, *arguments: Expr) -> Expr:
    """``name(a, b)``"""
    return Expr(f"{name}({', '.join(a.text for a in arguments)})", depth_of(*arguments))


def depth_of(*inputs: Expr) -> int:
    """The depth of a value computed from `inputs`."""
    return max((e.depth for e in inputs), default=0)


def plus(a: Expr, b: Expr) -> Expr:
    """a + b as an index, with zeros left out."""
    if a.text == "0":
        return b
    if b.text == "0":
        return a
    if b.text.startswith("-"):
        return minus(a, Expr(b.text[1:], b.depth))
    return binary("+", a, b)


def minus(a: Expr, b: Expr) -> Expr:
    """a - b as an index; leaves out a zero b and avoids two signs."""
    if b.text == "0":
        return a
    if b.text.startswith("-"):
        return plus(a, Expr(b.text[1:], b.depth))
    return binary("-", a, b)


def times(a: Expr, b: Expr) -> Expr:
    """a * b as an index, with zeros and ones left out."""
    if a.text == "0" or b.text == "0":
        return ZERO
    if a.text == "1":
        return b
    if b.text == "1":
        return a
    return binary("*", a, b)


@dataclass(frozen=True, slots=True)
class PointerParameter:
    """A buffer: operand `operand` of the fusion, or its output `output`, or both when it is updated in place."""

    name: str
    element_type: ElementType
    operand: int | None
    output: int | None


@dataclass(frozen=True, slots=True)
class SizeParameter:
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A constant of the program that the kernel takes as an argument."""

    name: str
    element_type: ElementType
    value: Any

    @property
    def bits(self) -> int:
        """The value as a (signed) 64-bit pattern, its form in the argument table."""
        raw = np.asarray(self.value, self.element_type.dtype).tobytes().ljust(8, b"\0")
        return int(struct.unpack("<q", raw)[0])


KernelParameter = PointerParameter | SizeParameter | ScalarParameter


@dataclass(frozen=True, slots=True)
class EmittedKernel:
    """One kernel call: the text, the parameters with this call's values, and how the outer loop may be split."""

    source: str
    parameters: tuple[KernelParameter, ...]
    extent: int
    """Trip count of the loop that `lo, hi` slices."""
    cost: float
    """Estimated nanoseconds of one iteration of that loop on one thread."""
    copied_operands: tuple[tuple[int, int], ...] = ()
    """(operand, output): the output must hold a copy of the operand before the kernel runs, unless they share."""
    is_serial: bool = False
    """Pieces of that loop must not run at the same time: they write to the same bytes."""


@dataclass
class Scope:
    """A block of lines. Lines that an outer scope gets while an inner one is open come before the inner scope."""

    depth: int
    header: str = ""
    guarded: bool = False
    """True for a branch: a value that is computed inside may not be moved out of it."""
    lines: list[str | Scope] = field(default_factory=list)
    values: dict[Any, Expr] = field(default_factory=dict)

    def render(self, indent: str = "") -> Iterator[str]:
        if self.header:
            yield indent + self.header
            indent += "    "
            if not self.lines:
                yield indent + "pass"
        for line in self.lines:
            if isinstance(line, Scope):
                yield from line.render(indent)
            else:
                yield indent + line


class Writer:
    """The open scopes of a kernel and the names used so far."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [Scope(0)]
        self._names: dict[str, int] = {}

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    @property
    def depth(self) -> int:
        return self.scope.depth

    def fresh(self, stem: str) -> str:
        """A new name: the stem with the next number for this stem."""
        number = self._names.get(stem, 0)
        self._names[stem] = number + 1
        return f"{stem}{number}"

    @contextmanager
    def block(self, header: str, guarded: bool = False) -> Iterator[Scope]:
        """Puts lines into a new scope under `header`; the scope joins its parent when it closes."""
        parent = self.scope
        scope = Scope(parent.depth + 1, header, guarded or parent.guarded)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            popped = self.scopes.pop()
            assert popped is scope
            parent.lines.append(scope)

    def placement(self, depth: int) -> Scope:
        """The scope where a value of `depth` is computed: the outermost possible one."""
        scope = self.scope
        return scope if scope.guarded else self.scopes[depth]

    def let(self, stem: str, value: Expr) -> Expr:
        """Name a value: `stem3 = ...` in the outermost scope that has all the values it needs."""
        scope = self.placement(value.depth)
        name = self.fresh(stem)
        scope.lines.append(f"{name} = {value.text}")
        return Expr(name, scope.depth)

    def line(self, text: str) -> None:
        self.scope.lines.append(text)

    def recall(self, key: Any) -> Expr | None:
        """A value that an open scope has already computed."""
        for scope in reversed(self.scopes):
            found = scope.values.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: Any, value: Expr) -> Expr:
        """Keep `value` while the scope that defines it (the current one, if the value has no name) is open."""
        self.placement(value.depth).values[key] = value
        return value

    def text(self) -> list[str]:
        assert len(self.scopes) == 1, "a scope is still open"
        return list(self.scope.render())

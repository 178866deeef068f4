"""The expressions of loop programs.

Expressions are immutable. They are built with Python's operators, which also drop neutral terms and factors in an
index: ``i * 1 + 0`` is ``i``. `depth` is the nesting depth of the innermost scope on which a value depends; the writer
uses it to compute values outside of loops in which they do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from ...hlo.support.observed import ObservedSize
from .typing import is_float, pointee, type_of_binary, type_of_call, type_of_unary

CONDITIONAL, OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(13)
"""How strongly Python's operators bind."""

PRECEDENCE = {
    "or": OR, "and": AND, "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM,
    "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT,
    "==": COMPARISON, "!=": COMPARISON, "<": COMPARISON, "<=": COMPARISON, ">": COMPARISON, ">=": COMPARISON,
}  # fmt: skip


def _operator(op: str) -> Callable[[Expr, Expr | int], Expr]:
    """The method for an operator of Python."""
    return lambda self, other: Binary(op, self, as_expr(other))


class Expr:
    """An expression. Two are equal if they have the same text and depend on scopes of the same depth."""

    __slots__ = ("_loads", "_names", "_text", "_type", "depth")
    precedence: int = ATOM
    depth: int
    _text: str
    _type: str
    _names: tuple[str, ...]
    _loads: tuple[Load, ...]

    @property
    def text(self) -> str:
        """The expression as Python."""
        try:
            return self._text
        except AttributeError:
            self._text = self._print()
            return self._text

    @property
    def type(self) -> str:
        """Numba's name of the type: ``"int64"``, ``"float32"``, ``"bool"``, ``"float32*"``."""
        try:
            return self._type
        except AttributeError:
            self._type = self._find_type()
            return self._type

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that it is made of."""
        return ()

    def _print(self) -> str:
        raise NotImplementedError

    def _find_type(self) -> str:
        raise NotImplementedError

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        """The same operation on other operands."""
        return self

    def at(self, depth: int) -> Expr:
        """The same expression, as a value that depends on the scope of this depth."""
        if self.depth == depth:
            return self
        copy = self.with_parts(self.parts)
        if copy is self:
            raise NotImplementedError
        copy.depth = depth
        return copy

    def within(self, precedence: int) -> str:
        """The text as an operand of an operator of this precedence, in parentheses if needed."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def walk(self) -> Iterator[Expr]:
        """This expression and all that it is made of."""
        stack: list[Expr] = [self]
        while stack:
            top = stack.pop()
            yield top
            stack.extend(top.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, each as often as it is there."""
        try:
            return self._names
        except AttributeError:
            self._find_reads()
            return self._names

    @property
    def loads(self) -> tuple[Load, ...]:
        """The loads in it, outer ones before those in their indices."""
        try:
            return self._loads
        except AttributeError:
            self._find_reads()
            return self._loads

    def _find_reads(self) -> None:
        """Transforms ask for both again and again: one walk answers for as long as the expression lives."""
        names: list[str] = []
        loads: list[Load] = []
        stack: list[Expr] = [self]
        while stack:
            top = stack.pop()
            if type(top) is Name:
                names.append(top.name)
                continue
            if type(top) is Load:
                loads.append(top)
            stack.extend(top.parts)
        self._names, self._loads = tuple(names), tuple(loads)

    def reads(self, variable: str) -> bool:
        """True if a variable of this name is part of it."""
        return variable in self.names

    @property
    def is_simple(self) -> bool:
        """True for a name or a number: assigning it to another name would save nothing."""
        return False

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Expr) and self.depth == other.depth and self.text == other.text)

    def __hash__(self) -> int:
        try:
            return hash(self._text)
        except AttributeError:
            return hash(self.text)

    def __add__(self, other: Expr | int) -> Expr:
        return plus(self, as_expr(other))

    def __radd__(self, other: int) -> Expr:
        return plus(as_expr(other), self)

    def __sub__(self, other: Expr | int) -> Expr:
        return minus(self, as_expr(other))

    def __rsub__(self, other: int) -> Expr:
        return minus(as_expr(other), self)

    def __mul__(self, other: Expr | int) -> Expr:
        return times(self, as_expr(other))

    def __rmul__(self, other: int) -> Expr:
        return times(as_expr(other), self)

    __floordiv__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("//")
    __truediv__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("/")
    __mod__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("%")
    __and__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("&")
    __or__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("|")
    __xor__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("^")
    __lshift__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("<<")
    __rshift__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator(">>")
    __lt__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("<")
    __le__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator("<=")
    __gt__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator(">")
    __ge__: ClassVar[Callable[[Expr, Expr | int], Expr]] = _operator(">=")

    def __neg__(self) -> Expr:
        return Unary("-", self)

    def __invert__(self) -> Expr:
        return Unary("~", self)

    def eq(self, other: Expr | int) -> Expr:
        """``self == other``; Python's operator compares the expressions themselves."""
        return Binary("==", self, as_expr(other))

    def ne(self, other: Expr | int) -> Expr:
        """``self != other``"""
        return Binary("!=", self, as_expr(other))


class Name(Expr):
    """A local variable, a parameter or a pointer. Depth 0 is the whole kernel."""

    __slots__ = ("name", "text", "type")
    text: str  # attributes, because they are read very often
    type: str

    def __init__(self, name: str, type_: str = "int64", depth: int = 0) -> None:
        self.name = self.text = name
        self.type = type_
        self.depth = depth

    @property
    def is_simple(self) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self.text)

    def within(self, precedence: int) -> str:
        return self.text

    def at(self, depth: int) -> Name:
        return self if self.depth == depth else Name(self.name, self.type, depth)

    def __getitem__(self, index: Expr | int) -> Load:
        """The element of a pointer or of a local array."""
        return Load(self, as_expr(index))


class Number(Expr):
    """A literal. Its type is int64, float64 or bool."""

    __slots__ = ("value",)

    def __init__(self, value: float | bool | ObservedSize, depth: int = 0) -> None:
        self.value: float | bool = value.fixed() if isinstance(value, ObservedSize) else value
        self.depth = depth

    @property
    def precedence(self) -> int:  # type: ignore[override]
        return UNARY if self.text.startswith("-") else ATOM

    def _print(self) -> str:
        return repr(self.value)

    @property
    def type(self) -> str:
        kind = type(self.value)
        return "int64" if kind is int else "float64" if kind is float else "bool"

    @property
    def is_simple(self) -> bool:
        return type(self.value) is bool or self.text.isdecimal()

    def at(self, depth: int) -> Number:
        return Number(self.value, depth)


class Binary(Expr):
    """``left op right``, with Python's operators; ``and`` and ``or`` too."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        self.op, self.left, self.right = op, left, right
        self.depth = max(left.depth, right.depth)

    @property
    def precedence(self) -> int:  # type: ignore[override]
        return PRECEDENCE[self.op]

    def _print(self) -> str:
        own = PRECEDENCE[self.op]
        left, right = own, own + 1
        if own == COMPARISON:  # comparisons are not chained
            left = right
        elif own == SHIFT:  # few people know how strongly shifts bind
            left = right = UNARY
        elif BIT_OR <= own <= BIT_AND:
            left, right = (UNARY if _is_shift(e) else p for e, p in ((self.left, left), (self.right, right)))
        return f"{self.left.within(left)} {self.op} {self.right.within(right)}"

    def _find_type(self) -> str:
        return type_of_binary(self.op, self.left.type, self.right.type)

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def with_parts(self, parts: tuple[Expr, ...]) -> Binary:
        return Binary(self.op, parts[0], parts[1])


def _is_shift(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op in ("<<", ">>")


class Unary(Expr):
    """``-operand``, ``~operand``, ``not operand``"""

    __slots__ = ("op", "operand")

    def __init__(self, op: str, operand: Expr) -> None:
        self.op, self.operand = op, operand
        self.depth = operand.depth

    @property
    def precedence(self) -> int:  # type: ignore[override]
        return NOT if self.op == "not" else UNARY

    def _print(self) -> str:
        if self.op == "not":
            return f"not {self.operand.within(UNARY)}"
        return f"{self.op}{self.operand.within(UNARY + 1)}"

    def _find_type(self) -> str:
        return type_of_unary(self.op, self.operand.type)

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def with_parts(self, parts: tuple[Expr, ...]) -> Unary:
        return Unary(self.op, parts[0])


class Call(Expr):
    """``function(arguments)``: a function of the dialect, or a cast, which is called like its type."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: str, arguments: tuple[Expr, ...]) -> None:
        self.function, self.arguments = function, arguments
        self.depth = max((a.depth for a in arguments), default=0)

    def _print(self) -> str:
        return f"{self.function}({', '.join([a.text for a in self.arguments])})"

    def _find_type(self) -> str:
        return type_of_call(self.function, [a.type for a in self.arguments])

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.arguments

    def with_parts(self, parts: tuple[Expr, ...]) -> Call:
        return Call(self.function, parts)


class Load(Expr):
    """``pointer[index]``. It must not be moved across a store."""

    __slots__ = ("index", "pointer")

    def __init__(self, pointer: Name, index: Expr) -> None:
        self.pointer, self.index = pointer, index
        self.depth = max(pointer.depth, index.depth)

    def _print(self) -> str:
        return f"{self.pointer.text}[{self.index.text}]"

    def _find_type(self) -> str:
        return pointee(self.pointer.type)

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.pointer, self.index

    def with_parts(self, parts: tuple[Expr, ...]) -> Load:
        pointer, index = parts
        assert isinstance(pointer, Name)
        return Load(pointer, index)


ZERO, ONE = Number(0), Number(1)


def as_expr(value: Expr | int | float) -> Expr:
    """A Python number as an expression."""
    return value if isinstance(value, Expr) else Number(value)


def call(function: str, *arguments: Expr | int) -> Expr:
    """``function(a, b)``"""
    return Call(function, tuple([as_expr(a) for a in arguments]))


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    """``minimum(a, b)``"""
    return call("minimum", a, b)


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    """``maximum(a, b)``"""
    return call("maximum", a, b)


def all_of(tests: list[Expr]) -> Expr:
    """``a and b and c``"""
    result = tests[0]
    for test in tests[1:]:
        result = Binary("and", result, test)
    return result


def is_number(a: Expr, value: int) -> bool:
    """True for the literal `value`."""
    return type(a) is Number and type(a.value) is int and a.value == value


def plus(a: Expr, b: Expr) -> Expr:
    """a + b as an index, with zeros left out and ``a + -b`` as ``a - b``."""
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    negated = _negated(b)
    return Binary("+", a, b) if negated is None else minus(a, negated)


def minus(a: Expr, b: Expr) -> Expr:
    """a - b as an index; leaves out a zero b and avoids two signs."""
    if is_number(b, 0):
        return a
    negated = _negated(b)
    return Binary("-", a, b) if negated is None else plus(a, negated)


def _negated(a: Expr) -> Expr | None:
    """x, if `a` is written as ``-x`` or ``0 - x``."""
    if type(a) is Number and a.text.startswith("-"):
        return Number(-a.value, a.depth)
    if type(a) is Unary and a.op == "-":
        return a.operand
    if type(a) is Binary and a.op == "-" and is_number(a.left, 0):
        return a.right
    return None


def times(a: Expr, b: Expr) -> Expr:
    """a * b as an index, with zeros and ones left out."""
    if is_number(a, 0) or is_number(b, 0):
        return ZERO
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    return Binary("*", a, b)


def sum_of(a: Expr, b: Expr) -> Expr:
    """The sum of two numbers of one type that a program computes with: ``a + b`` of floats, ``add(a, b)`` of others.
    Integers wrap around, where `plus` is for indices, which do not."""
    return Binary("+", a, b) if is_float(a.type) else Call("add", (a, b))


def product_of(a: Expr, b: Expr) -> Expr:
    """Their product: ``a * b`` of floats, ``multiply(a, b)`` of others."""
    return Binary("*", a, b) if is_float(a.type) else Call("multiply", (a, b))


def product(first: Expr, *factors: Expr | int) -> Expr:
    """``a * b * c``; zeros and ones are not left out."""
    for factor in factors:
        first = Binary("*", first, as_expr(factor))
    return first

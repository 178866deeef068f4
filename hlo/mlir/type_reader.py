"""Reading types of MLIR text. Source: MLIR's language reference, "Type System", and its builtin dialect."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, TypeVar

from ..element_type import ElementType
from .elements import ELEMENT_TYPES, float_bits, float_text
from .scanner import Tokens
from .tree import (
    DYNAMIC,
    Attribute,
    Function,
    IndexType,
    NoneType,
    OtherType,
    Quantized,
    Tensor,
    Token,
    Tuple,
    Type,
)

T = TypeVar("T")

_INDEX = IndexType()
_WORDS: dict[str, Type] = {
    **ELEMENT_TYPES, "index": _INDEX, "none": NoneType(), "!stablehlo.token": Token(), "!mhlo.token": Token(),
    **{name: OtherType(name) for name in ("tf32", "f80", "f128", "f6E2M3FN", "f6E3M2FN")},
}  # fmt: skip
"""The types that are one token."""
_ELEMENTS: dict[str, ElementType | IndexType] = {**ELEMENT_TYPES, "index": _INDEX}
_LONGEST_RANK = 256
_TYPE_WORDS = ("tensor", "tuple", "complex", "vector", "memref")


class TypeReader(Tokens):
    """Tokens that are read as types."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self._types = dict(_WORDS)
        self._aliases: dict[str, int] = {}
        self._alias_values: dict[str, Any] = {}
        tokens = self.tokens
        for index, token in enumerate(tokens):
            if token == "=" and index and tokens[index - 1][0] in "#!" and len(tokens[index - 1]) > 1:
                self._aliases.setdefault(tokens[index - 1], self.starts[index])

    @abstractmethod
    def attribute(self) -> Attribute:
        """The encoding of a tensor type."""

    # ---- aliases: `#map = ...` anywhere at the top level, also after its use

    def alias(self, name: str, read: Callable[[], T], what: str) -> T:
        """The value of the alias `#name` or `!name`, whose token has been taken; `read` reads its definition."""
        if name not in self._alias_values:
            start = self._aliases.get(name)
            if start is None:
                raise self.error(f"{what} {name} is not defined", self.index - 1)
            del self._aliases[name]  # so that one that names itself ends
            back = self.starts[self.index]
            self.index = bisect_left(self.starts, start) + 1
            self.enter()
            self._alias_values[name] = read()
            self.leave()
            self.index = bisect_left(self.starts, back)
        value: T = self._alias_values[name]
        return value

    # ---- lists

    def comma_list(self, closing: str, item: Callable[[], T]) -> list[T]:
        """Items with commas between them up to a closing bracket, which is taken; the opening one was before."""
        items: list[T] = []
        if self.accept(closing):
            return items
        while True:
            items.append(item())
            if not self.accept(","):
                self.expect(closing)
                return items

    # ---- types

    def type(self) -> Type:
        """A type. UnsupportedError for element types that hloom has not."""
        token = self.tokens[self.index]
        found = self._types.get(token)
        if found is not None:
            self.index += 1
            return found
        if token[:7] == "tensor<":
            found = self._types[token] = self._tensor()
            return found
        return self._other_type(token)

    def is_type(self) -> bool:
        """A type comes next, as far as its first token says."""
        token = self.tokens[self.index]
        if token in self._types or token[:1] in ("!", "(") or token[:7] == "tensor<":
            return True
        return token in _TYPE_WORDS or (token[:1] in "iuf" and token[-1:].isdecimal())

    def _other_type(self, token: str) -> Type:
        self.enter()
        try:
            if token == "(":
                return self.function_type()
            start = self.starts[self.index]
            if token == "tensor":
                return self._tensor()
            if token == "tuple":
                self.index += 1
                self.expect("<")
                return Tuple(tuple(self.comma_list(">", self.type)))
            if token == "complex":
                text = self.balanced(start, "<").replace(" ", "")
                if text not in ELEMENT_TYPES:
                    raise self.error_at(f"expected complex<f32> or complex<f64>, found {text[:40]!r}", start)
                return ELEMENT_TYPES[text]
            if token in ("vector", "memref"):
                return OtherType(self.balanced(start, "<"))
            if token[:1] == "!" and len(token) > 1:
                self.index += 1
                if "." not in token:
                    return self.alias(token, self.type, "the type alias")
                text = self.balanced(start, "<") if self.next == "<" else token
                return _quantized(text) if token.startswith("!quant.") else OtherType(text)
            if token[:1] in "ius" and token[-1:].isdecimal() and token.lstrip("sui").isdecimal():
                self.index += 1
                return OtherType(token)
        finally:
            self.leave()
        raise self.expected("a type")

    def function_type(self) -> Function:
        """`(T, ...) -> T` or `(T, ...) -> (T, ...)`."""
        self.expect("(", "to begin a function type")
        inputs = tuple(self.comma_list(")", self.type))
        self.expect("->")
        return Function(inputs, self.result_types())

    def result_types(self) -> tuple[Type, ...]:
        """`T` or `(T, ...)`."""
        if self.accept("("):
            return tuple(self.comma_list(")", self.type))
        return (self.type(),)

    def _tensor(self) -> Tensor:
        """A tensor type. Its shape is not made of tokens: `10x20xf32`."""
        index, start = self.index, self.starts[self.index]
        token = self.tokens[index]
        if token == "tensor":  # its encoding has brackets of other kinds, or strings
            self.index += 1
            self.expect("<")
            inside = start + self.text[start:].index("<") + 1
            body = self.text[inside : self.text.find(",", inside) + 1]
        else:
            inside, body = start + 7, token[7:-1]
        shape, comma, rest = body.partition(",")
        dimensions: list[int] = []
        name = shape.strip()
        while True:
            head, cross, tail = name.partition("x")
            head = head.rstrip()
            if not cross or not (head == "?" or (head.isascii() and head.isdecimal())):
                break
            if len(head) > 19 or len(dimensions) == _LONGEST_RANK or (head != "?" and int(head) >= 2**63):
                raise self.error_at("the sizes of this tensor are too large", start)
            dimensions.append(DYNAMIC if head == "?" else int(head))
            name = tail.lstrip()
        if name.startswith("!quant."):
            name = body[body.index("!") :]
            end = _end_of_brackets(name)
            rest, name = name[end:].lstrip(), name[:end]
            comma, rest = rest[:1], rest[1:]
            element: Any = _quantized(name)
        else:
            element = _ELEMENTS.get(name) or _ELEMENTS.get(name.replace(" ", ""))
        if element is None:
            if name[:1] == "*":
                raise self.unsupported("a tensor of unknown rank", start)
            if not name or not (name[0].isalpha() or name[0] == "!"):
                raise self.error_at("expected tensor<SIZExSIZExTYPE>", start)
            raise self.unsupported(f"a tensor with elements of type {name[:40]}", start)
        encoding = None
        if comma:
            self.jump(inside + len(body) - len(rest))
            encoding = self.attribute()
            self.expect(">", "after the encoding of a tensor")
        elif token == "tensor":
            raise self.error_at("expected tensor<SIZExSIZExTYPE>", start)
        else:
            self.index: int = index + 1
        return Tensor(tuple(dimensions), element, encoding)


def _quantized(text: str) -> Quantized:
    """A quantized type, with its numbers as MLIR prints them."""
    numbers = re.compile(r"(?<![\w.])\d+\.\d*(?:[eE][-+]?\d+)?")
    return Quantized(numbers.sub(lambda m: float_text(float_bits(float(m[0]), ElementType.F64), ElementType.F64), text))


def _end_of_brackets(text: str) -> int:
    """Where the first `<` of a text is closed; its length if there is none."""
    depth = 0
    for match in re.finditer(r"[<>]", text):
        depth += 1 if match[0] == "<" else -1
        if depth == 0:
            return match.end()
    return len(text)

"""Reading types and attributes of MLIR text.

Source: MLIR's language reference, "Type System" and "Attributes", and its builtin dialect. What a dialect's attribute
looks like, e.g. `#stablehlo.gather<...>`, is in the table that the reader is given; all others stay text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ..element_type import ElementType
from .dense import read_dense, read_float
from .elements import ELEMENT_TYPES, float_bits, float_text
from .scanner import Tokens, is_identifier, unescaped
from .tree import (
    DYNAMIC,
    Attribute,
    Dense,
    DenseArray,
    Enumerated,
    Float,
    Function,
    IndexType,
    Integer,
    Location,
    NoneType,
    Opaque,
    OtherType,
    Quantized,
    Symbol,
    Tensor,
    Token,
    Tuple,
    Type,
    TypeAttribute,
    Unit,
)

T = TypeVar("T")


class AttributeForm(Protocol):
    """How an attribute of a dialect is written after its name: `<offset_dims = [0]>`."""

    def read(self, reader: AttributeReader) -> Attribute: ...

    def write(self, attribute: Any, written: Callable[[Attribute], str]) -> str:
        """All of the attribute. `written` writes an attribute that is in it."""


_INDEX = IndexType()
_WORDS: dict[str, Type] = {
    **ELEMENT_TYPES, "index": _INDEX, "none": NoneType(), "!stablehlo.token": Token(), "!mhlo.token": Token(),
    **{name: OtherType(name) for name in ("tf32", "f80", "f128", "f6E2M3FN", "f6E3M2FN")},
}  # fmt: skip
"""The types that are one token."""
_ELEMENTS: dict[str, ElementType | IndexType] = {**ELEMENT_TYPES, "index": _INDEX}
_LONGEST_RANK = 256
_SHORT = 64
"""Characters of literals that are kept: programs have `dense<0.000000e+00>` many times."""


class AttributeReader(Tokens):
    """Tokens that are read as types and attributes. `forms`: the dialects' attributes, by names such as
    `stablehlo.gather`."""

    def __init__(self, text: str, file: str, forms: Mapping[str, AttributeForm]) -> None:
        super().__init__(text, file)
        self._forms = forms
        self._types = dict(_WORDS)
        self._literals: dict[tuple[str, Tensor], Dense] = {}
        self._aliases: dict[str, int] = {}
        self._alias_values: dict[str, Any] = {}
        self._resource_data: dict[str, bytes] | None = None
        tokens = self.tokens
        for index, token in enumerate(tokens):
            if token == "=" and index and tokens[index - 1][0] in "#!" and len(tokens[index - 1]) > 1:
                self._aliases.setdefault(tokens[index - 1], self.starts[index])

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
            self.index = index + 1
        return Tensor(tuple(dimensions), element, encoding)

    # ---- attributes

    def attribute(self) -> Attribute:
        """An attribute of any kind, with its type where one is written."""
        token = self.tokens[self.index]
        first = token[:1]
        if token in _CONSTANTS:
            self.index += 1
            return _CONSTANTS[token]
        if first == '"':
            return self.string("a string")
        if first.isdecimal() or (first == "-" and token[1:2].isdecimal()):
            return self._number()
        if token[:6] == "dense<":
            return self._dense()
        if token[:6] == "array<":
            return self._dense_array()
        if first == "@":
            return self.symbol_reference()
        if first == "#" and len(token) > 1:
            return self._hash_attribute(token)
        if first == "[":
            self.enter()
            self.index += 1
            items = tuple(self.comma_list("]", self.attribute))
            self.leave()
            return items
        if first == "{":
            return self.dictionary()
        if self.is_type():
            return TypeAttribute(self.type())
        if token == "dense_resource":
            return self._resource()
        if token in _TEXT_ATTRIBUTES:
            return Opaque("builtin", self.balanced(self.starts[self.index]))
        raise self.expected("an attribute")

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = value, "name", ...}`."""
        self.enter()
        self.expect("{")
        found: dict[str, Attribute] = {}
        while not self.accept("}"):
            start = self.index
            name = self.string("a name") if self.next[:1] == '"' else self.word("the name of an attribute")
            if name in found:
                raise self.error(f"the attribute {name} is given twice", start)
            found[name] = self.attribute() if self.accept("=") else Unit()
            if not self.accept(","):
                self.expect("}", "or ',' after an attribute")
                break
        self.leave()
        return found

    def symbol_reference(self) -> Symbol:
        """`@name`, `@outer::@inner`."""
        names = [self.symbol("a symbol")]
        while self.accept("::"):
            names.append(self.symbol("a symbol"))
        return Symbol(tuple(names))

    def _number(self) -> Attribute:
        start = self.index
        token = self.take()
        is_float = "." in token
        kind: Any = ElementType.F64 if is_float else ElementType.S64
        if self.accept(":"):
            kind = self.type()
        if isinstance(kind, Tensor | Quantized) or not isinstance(kind, ElementType | IndexType):
            raise self.error("expected the type of a number", self.index - 1)
        try:
            if isinstance(kind, ElementType) and kind.is_floating:
                if not is_float and not token.startswith("0x"):
                    raise ValueError(f"{token[:40]} is no float: expected a number such as 1.0")
                return Float(read_float(token, kind), kind)
        except ValueError as error:
            raise self.error(str(error), start) from None
        if is_float or (isinstance(kind, ElementType) and kind.is_complex):
            raise self.error(f"{token[:40]} is no number of this type", start)
        value = int(token, 16 if "0x" in token[:3] else 10) if len(token) < 80 else 2**64
        low, high = (-(2**63), 2**64 - 1) if isinstance(kind, IndexType) else _limits(kind)
        if not low <= value <= high:
            raise self.error(f"{token[:40]} does not fit in its type", start)
        if kind is ElementType.PRED:
            return bool(value)
        return Integer(value, kind)

    def _dense(self) -> Dense:
        start = self.index
        text = self.take()[6:-1]
        self.expect(":", "and the type of the literal")
        kind = self.type()
        if not isinstance(kind, Tensor):
            raise self.error("expected a tensor type for the literal", self.index - 1)
        if isinstance(kind.element, Quantized):
            raise self.unsupported(f"a literal of the type {kind.element.text}", self.starts[start])
        is_kept = len(text) < _SHORT and kind.encoding is None
        found = self._literals.get((text, kind)) if is_kept else None
        if found is not None:
            return found
        try:
            found = read_dense(text, kind)
        except ValueError as error:
            raise self.error(str(error), start) from None
        except (MemoryError, OverflowError):
            raise self.error("the literal cannot be held in memory", start) from None
        found.array.flags.writeable = False
        if is_kept:
            self._literals[text, kind] = found
        return found

    def _dense_array(self) -> DenseArray:
        start = self.index
        name, _, rest = self.take()[6:-1].partition(":")
        element = ELEMENT_TYPES.get(name.strip())
        if element is None or element.is_complex:
            raise self.error(f"expected array<TYPE: ...> with a type of numbers, found {name.strip()[:40]!r}", start)
        items = [item.strip() for item in rest.split(",")] if rest.strip() else []
        kind = Tensor((len(items),), element)
        try:
            values = read_dense(f"[{','.join(items)}]", kind).array
        except ValueError as error:
            raise self.error(str(error).replace("the literal", "the array"), start) from None
        if element.is_floating:
            return DenseArray(element, tuple(float(value) for value in values))
        return DenseArray(element, tuple(values.tolist() if values.dtype.isbuiltin else map(int, values)))

    def _hash_attribute(self, token: str) -> Attribute:
        start = self.starts[self.index]
        self.index += 1
        dialect, dot, _ = token[1:].partition(".")
        if not dot and self.next == "<":  # `#stablehlo<precision HIGH>`
            words = self.tokens[self.index + 1 : self.index + 4]
            if len(words) == 3 and words[2] == ">" and is_identifier(words[0]) and is_identifier(words[1]):
                self.index += 4
                return Enumerated(dialect, words[0], words[1])
            return Opaque(dialect, self.balanced(start, "<"))
        if not dot:
            return self.alias(token, self.attribute, "the attribute alias")
        form = self._forms.get(token[1:])
        if form is not None:
            return form.read(self)
        return Opaque(dialect, self.balanced(start, "<") if self.next == "<" else token)

    # ---- constants that are kept at the end of the file

    def _resource(self) -> Dense:
        start = self.index
        self.index += 1
        self.expect("<")
        name = self.string("the name of a resource") if self.next[:1] == '"' else self.word("the name of a resource")
        self.expect(">")
        self.expect(":", "and the type of the literal")
        kind = self.type()
        if self._resource_data is None:
            self._resource_data = self._read_resources()
        data = self._resource_data.get(name)
        if data is None:
            raise self.error(f"the file has no resource {name}", start)
        if not isinstance(kind, Tensor) or not isinstance(kind.element, ElementType | IndexType):
            raise self.error("expected a tensor type of numbers for the resource", self.index - 1)
        try:
            return read_dense(f'"0x{data.hex()}"', kind)
        except ValueError as error:
            raise self.error(str(error), start) from None

    def _read_resources(self) -> dict[str, bytes]:
        """The section `{-# dialect_resources: {builtin: {name: "0x..."}} #-}`: four bytes of alignment, then data."""
        found: dict[str, bytes] = {}
        if "{-#" not in self.tokens:
            return found
        tokens = self.tokens
        for index in range(tokens.index("{-#"), len(tokens) - 2):
            if tokens[index + 1] == ":" and tokens[index + 2][:3] == '"0x':
                name, digits = tokens[index], tokens[index + 2][3:-1]
                try:
                    data = bytes.fromhex(digits)
                except ValueError:
                    raise self.error("expected a string of bytes, with two digits for each", index + 2) from None
                name = (unescaped(name[1:-1]) or "") if name[0] == '"' else name
                found[name] = data[4:]
        return found

    # ---- locations

    def location(self) -> Location | None:
        """`loc(...)` if it comes next: the outermost name, and the innermost place in a file."""
        if self.next != "loc":
            return None
        self.index += 1
        self.expect("(")
        found = self._location_inside()
        self.expect(")")
        return found

    def _location_inside(self) -> Location:
        self.enter()
        token = self.next
        found = Location()
        if token == "unknown":
            self.index += 1
        elif token[:1] == "#":
            self.index += 1
            found = self.alias(token, self._location_definition, "the location")
        elif token == "fused":
            self.index += 1
            if self.next == "<":
                self.balanced(self.starts[self.index])
            self.expect("[")
            inner = self.comma_list("]", self._location_inside)
            found = _merged(inner)
        elif token == "callsite":
            self.index += 1
            self.expect("(")
            callee = self._location_inside()
            if self.word("'at'") != "at":
                raise self.expected("'at'", self.index - 1)
            if callee.file and self.next[:1] == "#":  # all callers may be hundreds, each in the next
                self.index += 1
                found = callee
            else:
                found = _merged([callee, self._location_inside()])
            self.expect(")")
        elif token[:1] == '"':
            name = self.string("a name or a file")
            if self.accept(":"):
                line = self.integer("a line")
                self.expect(":")
                column = self.integer("a column")
                if self.next == "to":  # a range
                    self.index += 1
                    while self.next == ":" or self.next.isdecimal():
                        self.index += 1
                found = Location("", name, line, column)
            elif self.accept("("):
                inside = self._location_inside()
                self.expect(")")
                found = Location(name, inside.file, inside.line, inside.column)
            else:
                found = Location(name)
        else:
            raise self.expected("a location")
        self.leave()
        return found

    def _location_definition(self) -> Location:
        found = self.location()
        if found is None:
            raise self.expected("a location")
        return found


def _merged(locations: list[Location]) -> Location:
    """One location that says what the first of several that know it say."""
    name = next((each.name for each in locations if each.name), "")
    place = next((each for each in locations if each.file), Location())
    return Location(name, place.file, place.line, place.column)


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


def _limits(kind: ElementType) -> tuple[int, int]:
    """All numbers that a type of integers is written with: `255 : i8` is -1 there."""
    if kind is ElementType.PRED:
        return -1, 1
    return -(1 << (kind.bit_width - 1)), (1 << kind.bit_width) - 1


_CONSTANTS: dict[str, Attribute] = {"true": True, "false": False, "unit": Unit()}
_TYPE_WORDS = ("tensor", "tuple", "complex", "vector", "memref")
_TEXT_ATTRIBUTES = ("affine_map", "affine_set", "strided", "sparse", "opaque", "distinct", "loc", "dense")


def read_type(text: str) -> Type:
    """The type that is all of `text`. HloParseError if there is none; UnsupportedError for one that is not known."""
    reader = AttributeReader(text, "<type>", {})
    return _all_of(reader, reader.type)


def read_attribute(text: str) -> Attribute:
    """The attribute that is all of `text`, with those of dialects as text. HloParseError if there is none."""
    reader = AttributeReader(text, "<attribute>", {})
    return _all_of(reader, reader.attribute)


def _all_of(reader: AttributeReader, read: Callable[[], T]) -> T:
    found = read()
    if reader.next:
        raise reader.expected("the end")
    return found

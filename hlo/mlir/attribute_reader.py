"""Reading attributes of MLIR text.

The reader gets a table of dialects' attributes, such as `#stablehlo.gather<...>`, and reads these. It keeps the text of
all others. Source: MLIR's language reference, "Attributes", and its builtin dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ..element_type import ElementType
from .dense import read_dense, read_float, read_sparse
from .elements import ELEMENT_TYPES
from .scanner import is_identifier, unescaped
from .tree import (
    Attribute,
    Dense,
    DenseArray,
    Enumerated,
    Float,
    IndexType,
    Integer,
    Opaque,
    Quantized,
    Symbol,
    Tensor,
    Type,
    TypeAttribute,
    Unit,
)
from .type_reader import TypeReader

T = TypeVar("T")


class AttributeFormat(Protocol):
    """How an attribute of a dialect is written after its name: `<offset_dims = [0]>`."""

    def read(self, reader: AttributeReader) -> Attribute: ...

    def write(self, attribute: Any, written: Callable[[Attribute], str]) -> str:
        """All of the attribute. `written` writes an attribute that is in it."""


_NO_FORMATS: Mapping[str, AttributeFormat] = {}
_SHORT = 64
"""Characters of literals that are kept: programs have `dense<0.000000e+00>` many times."""
_CONSTANTS: dict[str, Attribute] = {"true": True, "false": False, "unit": Unit()}
_TEXT_ATTRIBUTES = ("affine_map", "affine_set", "strided", "opaque", "distinct", "loc", "dense")


class AttributeReader(TypeReader):
    """Tokens that are read as types and attributes. `formats`: the dialects' attributes, by names such as
    `stablehlo.gather`."""

    def __init__(self, text: str, file: str, formats: Mapping[str, AttributeFormat]) -> None:
        super().__init__(text, file)
        self._formats = formats
        self._literals: dict[tuple[str, Tensor], Dense] = {}
        self._resource_data: dict[str, bytes] | None = None

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
        if token == "sparse":
            return self._sparse()
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
        return self._literal(start, text, read_dense)

    def _sparse(self) -> Dense:
        """`sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>`, as the literal with all elements."""
        start = self.index
        text = self.balanced(self.starts[start], "<")
        return self._literal(start, text[text.index("<") + 1 : -1], read_sparse)

    def _literal(self, start: int, text: str, read: Callable[[str, Tensor], Dense]) -> Dense:
        """The literal whose elements are `text`; its type comes next. start: the token that begins it."""
        self.expect(":", "and the type of the literal")
        kind = self.type()
        if not isinstance(kind, Tensor):
            raise self.error("expected a tensor type for the literal", self.index - 1)
        if isinstance(kind.element, Quantized):
            raise self.unsupported(f"a literal of the type {kind.element.text}", self.starts[start])
        is_kept = read is read_dense and len(text) < _SHORT and kind.encoding is None
        found = self._literals.get((text, kind)) if is_kept else None
        if found is not None:
            return found
        try:
            found = read(text, kind)
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
        known = self._formats.get(token[1:])
        if known is not None:
            return known.read(self)
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


def _limits(kind: ElementType) -> tuple[int, int]:
    """All numbers that a type of integers is written with: `255 : i8` is -1 there."""
    if kind is ElementType.PRED:
        return -1, 1
    return -(1 << (kind.bit_width - 1)), (1 << kind.bit_width) - 1


def read_type(text: str) -> Type:
    """The type that is all of `text`. HloParseError if there is none; UnsupportedError for one that is not known."""
    reader = AttributeReader(text, "<type>", {})
    return _all_of(reader, reader.type)


def read_attribute(text: str, formats: Mapping[str, AttributeFormat] = _NO_FORMATS) -> Attribute:
    """The attribute that is all of `text`; a dialect's attribute without a format is kept as text. HloParseError if
    there is none."""
    reader = AttributeReader(text, "<attribute>", formats)
    return _all_of(reader, reader.attribute)


def read_attributes(text: str) -> dict[str, Attribute]:
    """The attributes of the dictionary that is all of `text`, as `read_attribute`."""
    reader = AttributeReader(text, "<attributes>", _NO_FORMATS)
    return _all_of(reader, reader.dictionary)


def _all_of(reader: AttributeReader, read: Callable[[], T]) -> T:
    found = read()
    if reader.next:
        raise reader.expected("the end")
    return found

"""The kinds of attributes in assembly formats: how each is read and written where its declaration says its type.

Source: MLIR's declarative assembly format ("Operation Definition Specification").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..element_type import ElementType
from .attribute_writer import symbol_text
from .dense import read_float
from .operation_reader import OperationReader
from .operation_writer import OperationWriter, Unfit
from .tree import Attribute, Dense, DenseArray, Enumerated, Float, Integer, Opaque, Symbol


def _read_integer(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    kind = _TYPES[detail]
    return Integer(reader.integer("the number", kind.limits), kind)


_TYPES = {"i64": ElementType.S64, "i32": ElementType.S32, "ui64": ElementType.U64, "ui32": ElementType.U32}


def _read_float(reader: OperationReader, *_: str) -> Attribute:
    """A number without its type, which is f64."""
    token = reader.next
    start = reader.index
    reader.index += 1
    try:
        return Float(read_float(token, ElementType.F64), ElementType.F64)
    except ValueError:
        raise reader.expected("a number such as 1.0", start) from None


def read_integers(reader: OperationReader, *_: str) -> DenseArray:
    """`[0, 1]`."""
    reader.expect("[", "to begin a list")
    return DenseArray(ElementType.S64, tuple(reader.comma_list("]", lambda: reader.integer("a number"))))


def _read_enumerated(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    return Enumerated(dialect, detail, reader.word(f"a word for the {detail.replace('_', ' ')}"))


def _read_bool(reader: OperationReader, *_: str) -> Attribute:
    word = reader.word("true or false")
    if word not in ("true", "false"):
        raise reader.expected("true or false", reader.index - 1)
    return word == "true"


def _read_string(reader: OperationReader, *_: str) -> Attribute:
    return reader.string("a string")


def _read_symbol_name(reader: OperationReader, *_: str) -> Attribute:
    return reader.symbol("a name such as @f")


def _read_symbol(reader: OperationReader, *_: str) -> Attribute:
    return reader.symbol_reference()


def _read_elements(reader: OperationReader, *_: str) -> Attribute:
    start = reader.index
    found = reader.attribute()
    if not isinstance(found, Dense):
        raise reader.expected("a literal such as dense<0> : tensor<i32>", start)
    return found


def _plain(writer: OperationWriter, value: Attribute, detail: str) -> str:
    return writer.plain(value)


def _read_text(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    """An attribute that is kept as text. The format leaves out the beginning and the end of the text."""
    before, _, after = detail.partition("~")
    return Opaque(dialect, before + reader.balanced(reader.starts[reader.index]) + after)


def _text(value: Opaque, detail: str) -> str:
    before, _, after = detail.partition("~")
    if not (value.text.startswith(before) and value.text.endswith(after)):
        raise Unfit
    return value.text[len(before) : len(value.text) - len(after)]


def _read_word(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    words = detail.split(",")
    start = reader.index
    word = reader.word(f"one of {', '.join(words)}")
    if word not in words:
        raise reader.expected(f"one of {', '.join(words)}", start)
    return Integer(words.index(word), ElementType.S32)


def _word(value: Integer, detail: str) -> str:
    words = detail.split(",")
    if not 0 <= value.value < len(words):
        raise Unfit
    return words[value.value]


_Kind = tuple[Callable[[OperationReader, str, str], Attribute], Any, Callable[[OperationWriter, Any, str], str]]
KINDS: dict[str, _Kind] = {
    "integer": (_read_integer, Integer, _plain),
    "float": (_read_float, Float, _plain),
    "integers": (read_integers, DenseArray, _plain),
    "enum": (_read_enumerated, Enumerated, _plain),
    "bool": (_read_bool, bool, _plain),
    "string": (_read_string, str, _plain),
    "symbol_name": (_read_symbol_name, str, lambda writer, value, detail: symbol_text(value)),
    "text": (_read_text, Opaque, lambda writer, value, detail: _text(value, detail)),
    "word": (_read_word, Integer, lambda writer, value, detail: _word(value, detail)),
    "symbol": (_read_symbol, Symbol, _plain),
    "elements": (_read_elements, Dense, _plain),
}
"""The kinds of attributes in assembly formats: how each is read, its class in the tree, and how it is written. A detail
follows a colon in the table of formats: the type of an integer, the kind of an enumeration, the words for 0, 1, ..., or
the text around the attribute, with `~` in its place."""

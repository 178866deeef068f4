"""Dictionaries of MLIR attributes as the text in which HLO keeps them: configurations of custom calls, and the
parameters of composites. `hlo/text/mlir_dictionary.py` reads and writes the pairs; here are their values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..mlir.tree import (
    Attribute,
    Dense,
    DenseArray,
    Enumerated,
    Float,
    IndexType,
    Integer,
    Opaque,
    Record,
    Symbol,
    Tensor,
    Type,
    TypeAttribute,
    Unit,
)
from ..text.mlir_dictionary import Bare, read_dictionary_raw, read_string, write_dictionary
from .attributes import read_float
from .types import element_text, type_text

Pairs = tuple[tuple[str, str], ...]


def pairs_of(attributes: Mapping[str, Attribute]) -> Pairs:
    """The keys and texts of a dictionary; a string without its quotes."""
    return tuple((key, value if isinstance(value, str) else _text(value)) for key, value in attributes.items())


def dictionary_text(attributes: Mapping[str, Attribute]) -> str:
    """`{length = 10 : i64, name = "a"}`"""
    return write_dictionary(pairs_of(attributes))


def attributes_in(pairs: Pairs) -> dict[str, Attribute]:
    """The attributes of pairs that `pairs_of` or HLO text made."""
    return {str(key): _of_value(value) for key, value in pairs}  # a key may be marked as bare text


def attributes_of_text(text: str) -> dict[str, Attribute]:
    """The attributes of the text of a dictionary. ValueError if it is malformed."""
    return {str(key): Unit() if value is None else _attribute(value) for key, value in read_dictionary_raw(text)}


# ---- attributes as text


def _text(attribute: Any) -> str:
    """An attribute as MLIR writes it."""
    match attribute:
        case bool():
            return "true" if attribute else "false"
        case str():
            return write_dictionary([("a", attribute)])[5:-1]
        case Integer():
            return f"{attribute.value} : {_type(attribute.type)}"
        case Float():
            return f"{_float_text(attribute)} : {element_text(attribute.type)}"
        case tuple():
            return Bare(f"[{', '.join(map(_text, attribute))}]")
        case dict():
            return Bare(dictionary_text(attribute))
        case Unit():
            return Bare("unit")
        case Symbol():
            return Bare("::".join(f"@{name}" for name in attribute.names))
        case TypeAttribute():
            return Bare(type_text(attribute.type))
        case DenseArray():
            values = ", ".join(_number(value) for value in attribute.values)
            return Bare(f"array<{element_text(attribute.element)}{': ' if values else ''}{values}>")
        case Dense():
            return Bare(f"dense<{_nested(attribute.array)}> : {type_text(attribute.type)}")
        case Enumerated():
            return Bare(f"#{attribute.dialect}<{attribute.kind} {attribute.value}>")
        case Record():
            fields = ", ".join(f"{key} = {_field(value)}" for key, value in attribute.fields.items())
            return Bare(f"#{attribute.dialect}.{attribute.kind}<{fields}>")
        case Opaque():
            return Bare(attribute.text)
    raise TypeError(f"no attribute: {attribute!r}")


def _type(type_: Type) -> str:
    return "index" if isinstance(type_, IndexType) else type_text(type_)


def _field(value: Any) -> str:
    if isinstance(value, bool | int):
        return _number(value)
    return f"[{', '.join(map(_field, value))}]" if isinstance(value, tuple) else _text(value)


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | np.integer) else repr(float(value))


def _float_text(attribute: Float) -> str:
    value = read_float(attribute)
    if math.isfinite(value):
        return repr(value)
    return f"0x{attribute.bits:0{2 * attribute.type.byte_width}X}"


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return _number(array[()])
    return f"[{', '.join(map(_nested, array))}]" if array.size else ""


# ---- text as attributes


def _of_value(value: str) -> Attribute:
    """The attribute of a value in pairs: text is a string, if it is not bare and no number."""
    if isinstance(value, Bare):
        return Unit() if value == "unit" else _attribute(value)
    found = _plain(value)
    return value if found is None else found


def _attribute(text: str) -> Attribute:
    text = text.strip()
    if text.startswith('"'):
        return read_string(text)
    if text.startswith("{"):
        return attributes_of_text(text)
    if text.startswith("[") and text.endswith("]"):
        return tuple(map(_attribute, _split(text[1:-1])))
    if text.startswith("@"):
        return Symbol(tuple(part.strip().removeprefix("@") for part in text.split("::")))
    if text in _ELEMENTS:
        return TypeAttribute(_ELEMENTS[text])
    found = _plain(text)
    return Opaque("builtin", text) if found is None else found


_ELEMENTS = {element_text(element): element for element in ElementType}
_NUMBER = r"(-?[0-9][0-9a-zA-Z.+\-]*)(?:\s*:\s*([a-zA-Z0-9<>]+))?"
_DENSE = r"dense<(.*)>\s*:\s*tensor<((?:[0-9]+x)*)([a-zA-Z0-9<>]+)>"
_ARRAY = r"array<\s*([a-zA-Z0-9]+)\s*(?::(.*))?>"


def _plain(text: str) -> Attribute | None:
    """A number, a truth value or an array of numbers; None for other text."""
    if text in ("true", "false"):
        return text == "true"
    if match := re.fullmatch(_NUMBER, text):
        number, type_ = match.groups()
        is_float = "." in number or ("e" in number.lower() and not number.startswith("0x"))
        if type_ == "index":
            return Integer(int(number, 0), IndexType())
        element = _ELEMENTS.get(type_ or ("f64" if is_float else "i64"))
        if element is None:
            return None
        if not element.is_floating:
            return Integer(int(number, 0), element)
        if number.startswith("0x"):
            return Float(int(number, 16), element)
        return Float(int.from_bytes(np.asarray(float(number), element.dtype).tobytes(), "little"), element)
    if match := re.fullmatch(_ARRAY, text, re.DOTALL):
        element = _ELEMENTS.get(match.group(1))
        parts = _split(match.group(2) or "")
        return None if element is None else DenseArray(element, tuple(_value(part, element) for part in parts))
    if match := re.fullmatch(_DENSE, text, re.DOTALL):
        contents, sizes, type_ = match.groups()
        element = _ELEMENTS.get(type_)
        if element is None or contents.startswith('"') or element.is_complex:
            return None
        dimensions = tuple(int(size) for size in sizes.split("x") if size)
        values = [_value(part, element) for part in re.split(r"[\[\],\s]+", contents) if part]
        array = np.array(values, element.dtype)
        array = np.broadcast_to(array.reshape(()), dimensions) if array.size == 1 else array.reshape(dimensions)
        return Dense(Tensor(dimensions, element), array)
    return None


def _value(text: str, element: ElementType) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if element.is_floating else int(text, 0)


def _split(text: str) -> Sequence[str]:
    """The parts between commas that stand in no brackets and no string."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|->|[\[\](){}<>,]', text, re.DOTALL):
        token = match.group()
        if token in "[({<":
            depth += 1
        elif token in "])}>":
            depth -= 1
        elif token == "," and not depth:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start:].strip()
    return [*parts, last] if last or parts else []

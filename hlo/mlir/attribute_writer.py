"""Writing types and attributes as MLIR text, as MLIR's own printer does (AsmPrinter)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from .dense import write_dense
from .elements import bits_of, float_text, type_name
from .scanner import is_identifier, quoted
from .tree import (
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
    Record,
    Symbol,
    Tensor,
    Token,
    Tuple,
    Type,
    TypeAttribute,
    Unit,
)

_SINGLE = {Token: "!stablehlo.token", IndexType: "index", NoneType: "none"}


def type_text(kind: Type) -> str:
    """The type. UnsupportedError for integers of one bit, which MLIR takes for booleans."""
    if isinstance(kind, ElementType):
        if kind in (ElementType.S1, ElementType.U1):
            raise UnsupportedError(f"MLIR has no type {kind.value}")
        return type_name(kind)
    if isinstance(kind, Tensor):
        sizes = "".join(["?x" if size < 0 else f"{size}x" for size in kind.dimensions])
        encoding = "" if kind.encoding is None else f", {_encoding_text(kind.encoding)}"
        return f"tensor<{sizes}{type_text(kind.element)}{encoding}>"
    if isinstance(kind, Tuple):
        return f"tuple<{', '.join(map(type_text, kind.elements))}>"
    if isinstance(kind, Function):
        return function_text(kind.inputs, kind.results)
    if isinstance(kind, Quantized | OtherType):
        return kind.text
    return _SINGLE[type(kind)]


def _encoding_text(encoding: Attribute) -> str:
    if isinstance(encoding, Record) and encoding.kind == "bounds":
        return bounds_text(encoding)
    assert isinstance(encoding, Opaque | str), "an encoding is a record of bounds, or text"
    return encoding.text if isinstance(encoding, Opaque) else quoted(encoding)


def bounds_text(record: Record) -> str:
    """`#stablehlo.bounds<4, ?>`."""
    bounds = ", ".join("?" if size < 0 else str(size) for size in record.fields.get("bounds", ()))
    return f"#{record.dialect}.bounds<{bounds}>"


def function_text(inputs: Iterable[Type], results: Iterable[Type]) -> str:
    """`(T, ...) -> T`; several results, and none, are in parentheses."""
    return f"({', '.join(map(type_text, inputs))}) -> {results_text(tuple(results))}"


def results_text(results: tuple[Type, ...]) -> str:
    """`T`; several, none and a function are in parentheses."""
    if len(results) == 1 and not isinstance(results[0], Function):
        return type_text(results[0])
    return f"({', '.join(map(type_text, results))})"


def symbol_text(name: str) -> str:
    """`@name`, with quotes where it is no identifier."""
    return "@" + (name if is_identifier(name) else quoted(name))


class AttributeWriter:
    """Writes attributes. `formats`: how dialects write theirs, by names such as `stablehlo.gather`."""

    def __init__(self, formats: Mapping[str, Any]) -> None:
        self._formats = formats

    def text(self, attribute: Attribute, in_list: bool = False) -> str:
        """The attribute with its type. `in_list`: 64-bit numbers have none there."""
        writer = _WRITERS.get(type(attribute))
        if writer is not None:
            return writer(attribute, in_list)
        if isinstance(attribute, tuple):
            return f"[{', '.join([self.text(item, in_list=True) for item in attribute])}]"
        if isinstance(attribute, dict):
            return self.dictionary(attribute)
        assert isinstance(attribute, Record), f"{attribute!r} is no attribute"
        format = self._formats.get(f"{attribute.dialect}.{attribute.kind}")
        if format is None:
            raise UnsupportedError(f"the attribute #{attribute.dialect}.{attribute.kind} has no text")
        text: str = format.write(attribute, self.text)
        return text

    def dictionary(self, attributes: Mapping[str, Attribute]) -> str:
        """`{name = value, ...}`, in the order of names."""
        return "{" + ", ".join([self.named(name, attributes[name]) for name in sorted(attributes)]) + "}"

    def named(self, name: str, value: Attribute) -> str:
        key = name if is_identifier(name) else quoted(name)
        return key if isinstance(value, Unit) else f"{key} = {self.text(value)}"

    def plain(self, attribute: Attribute) -> str:
        """The attribute without its type: an operation whose declaration says the type writes it so."""
        if isinstance(attribute, Integer):
            return str(attribute.value)
        if isinstance(attribute, Float):
            return float_text(attribute.bits, attribute.type)
        if isinstance(attribute, DenseArray):
            return f"[{', '.join(_array_texts(attribute))}]"
        if isinstance(attribute, Enumerated):
            return attribute.value
        return self.text(attribute)


def _integer(attribute: Integer, in_list: bool) -> str:
    if in_list and attribute.type is ElementType.S64:
        return str(attribute.value)
    return f"{attribute.value} : {type_text(attribute.type)}"


def _float(attribute: Float, in_list: bool) -> str:
    text = float_text(attribute.bits, attribute.type)
    return text if in_list and attribute.type is ElementType.F64 and "." in text else (
        f"{text} : {type_text(attribute.type)}"
    )


def _array_texts(attribute: DenseArray) -> list[str]:
    if attribute.element.is_floating:
        array = np.array(attribute.values, attribute.element.dtype)
        return [float_text(bits, attribute.element) for bits in bits_of(array).tolist()]
    if attribute.element is ElementType.PRED:
        return ["true" if value else "false" for value in attribute.values]
    return list(map(str, attribute.values))


def _dense_array(attribute: DenseArray, in_list: bool) -> str:
    name = type_text(attribute.element)
    return f"array<{name}: {', '.join(_array_texts(attribute))}>" if attribute.values else f"array<{name}>"


_DOTTED = ("result_accuracy_mode",)
"""The enumerations that are written `#stablehlo.kind<VALUE>`."""


def _enumerated(attribute: Enumerated, in_list: bool) -> str:
    if attribute.kind in _DOTTED:
        return f"#{attribute.dialect}.{attribute.kind}<{attribute.value}>"
    return f"#{attribute.dialect}<{attribute.kind} {attribute.value}>"


_WRITERS: dict[type, Callable[[Any, bool], str]] = {
    bool: lambda attribute, in_list: "true" if attribute else "false",
    str: lambda attribute, in_list: quoted(attribute),
    Unit: lambda attribute, in_list: "unit",
    Integer: _integer,
    Float: _float,
    Symbol: lambda attribute, in_list: "::".join(map(symbol_text, attribute.names)),
    TypeAttribute: lambda attribute, in_list: type_text(attribute.type),
    DenseArray: _dense_array,
    Dense: lambda attribute, in_list: f"dense<{write_dense(attribute)}> : {type_text(attribute.type)}",
    Enumerated: _enumerated,
    Opaque: lambda attribute, in_list: attribute.text,
}


def location_text(location: Location | None) -> str:
    """` loc(...)`, for the end of an operation or an argument."""
    place = "unknown"
    if location is not None and location.file:
        place = f"{quoted(location.file)}:{location.line}:{location.column}"
    if location is not None and location.name:
        place = quoted(location.name) if place == "unknown" else f"{quoted(location.name)}({place})"
    return f" loc({place})"

"""The attributes, types and locations of MLIR's builtin dialect in bytecode.

Source: mlir/IR/BuiltinDialectBytecode.td, whose order gives the codes. Attributes and
types that programs in StableHLO do not use, e.g. vectors, are refused with their names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_named
from ..errors import UnsupportedError
from .bytecode_fields import Coding
from .bytecode_tensors import blob_of, dense_of, dtype_of
from .tree import (
    Dense,
    DenseArray,
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
    Tuple,
    TypeAttribute,
    Unit,
)

_FLOATS = {3: ElementType.BF16, 4: ElementType.F16, 5: ElementType.F32, 6: ElementType.F64}
_COMPLEX = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}
_REAL = {complex_: real for real, complex_ in _COMPLEX.items()}
_SIGNLESS, _SIGNED, _UNSIGNED = 0, 1, 2


def integer_attribute(number: tuple[Any, int]) -> bool | Integer:
    """An integer from its type and its bits."""
    type_, bits = number
    if type_ is ElementType.PRED:
        return bool(bits)
    width = 64 if isinstance(type_, IndexType) else type_.bit_width
    is_signed = isinstance(type_, IndexType) or type_.is_signed
    return Integer(bits - (1 << width) if is_signed and bits >> (width - 1) else bits, type_)


def float_attribute(number: tuple[Any, int]) -> Float:
    """A float from its type and its bits."""
    type_, bits = number
    return Float(bits, type_)


def complex_type(element: Any) -> ElementType:
    """The type of complex numbers with parts of a type; UnsupportedError if HLO lacks it."""
    found = _COMPLEX.get(element)
    if found is None:
        raise UnsupportedError(f"complex numbers of {element}")
    return found


def real_type(element: ElementType) -> ElementType:
    """The type of the parts of a complex number."""
    return _REAL[element]


def _integer_type(code: int) -> Any:
    width, sign = code >> 2, code & 3
    if width == 1 and sign == _SIGNLESS:
        return ElementType.PRED
    if sign == _SIGNED:
        return OtherType(f"si{width}")
    found = element_type_named(f"{'u' if sign == _UNSIGNED else 's'}{width}")
    if found is None:
        raise UnsupportedError(f"integers of {width} bits")
    return found


def _integer_code(type_: ElementType) -> int:
    sign = _SIGNLESS if type_.is_signed or type_ is ElementType.PRED else _UNSIGNED
    return type_.bit_width << 2 | sign


def _dense_array(element: Any, count: int, blob: memoryview) -> DenseArray:
    dtype = dtype_of(element)
    if len(blob) != count * dtype.itemsize:
        raise ValueError(f"{len(blob)} bytes for {count} elements of {dtype.itemsize} bytes")
    return DenseArray(element, tuple(np.frombuffer(blob, dtype).tolist()))


def _array_values(value: DenseArray) -> tuple[Any, ...]:
    return value.element, len(value.values), np.array(value.values, dtype_of(value.element)).tobytes()


def _nested_symbol(name: str, rest: tuple[Any, ...]) -> Symbol:
    if not all(isinstance(each, Symbol) for each in rest):
        raise ValueError("a part of a name is no name")
    return Symbol((name, *(each.names[0] for each in rest)))


def _tensor(sizes: tuple[int, ...], element: Any) -> Tensor:
    if not isinstance(element, (ElementType, Quantized, IndexType, OtherType)):
        raise ValueError("a tensor of tensors or functions")
    return Tensor(sizes, element)


def _encoded_tensor(encoding: Any, sizes: tuple[int, ...], element: Any) -> Tensor:
    if not isinstance(encoding, (Opaque, Record)):
        raise ValueError("an encoding of another kind")
    return Tensor(sizes, _tensor(sizes, element).element, encoding)


def _is_plain(value: Any) -> tuple[Any, ...]:
    return (value,)


ATTRIBUTES = (
    Coding("array", 0, ("attributes",), lambda values: values, _is_plain),
    Coding("dictionary", 1, ("pairs",), lambda items: items, _is_plain),
    Coding("string", 2, ("string",), lambda text: text, _is_plain),
    Coding("string with a type", 3, ("string", "type"), lambda text, type_: text, lambda text: (text, NoneType())),
    Coding("symbol", 4, ("text",), lambda name: Symbol((name,)), lambda value: value.names),
    Coding(
        "nested symbol", 5, ("text", "attributes"), _nested_symbol,
        lambda value: (value.names[0], tuple(Symbol((name,)) for name in value.names[1:])),
    ),
    Coding("type", 6, ("type",), TypeAttribute, lambda value: (value.type,)),
    Coding("unit", 7, (), Unit, lambda value: ()),
    Coding("integer", 8, ("number",), integer_attribute, lambda value: ((value.type, value.value),)),
    Coding("float", 9, ("number",), float_attribute, lambda value: ((value.type, value.bits),)),
    Coding("dense array", 17, ("type", "varint", "blob"), _dense_array, _array_values),
    Coding("dense elements", 18, ("type", "blob"), dense_of, lambda value: (value.type, blob_of(value))),
)  # fmt: skip

TYPES = (
    Coding("integer", 0, ("varint",), _integer_type, lambda type_: (_integer_code(type_),)),
    Coding("index", 1, (), IndexType, lambda type_: ()),
    Coding("function", 2, ("types", "types"), Function, lambda type_: (type_.inputs, type_.results)),
    *(
        Coding(element.value, code, (), lambda element=element: element, lambda type_: ())
        for code, element in _FLOATS.items()
    ),
    Coding("complex", 9, ("type",), complex_type, lambda type_: (real_type(type_),)),
    Coding("none", 12, (), NoneType, lambda type_: ()),
    Coding("tensor", 13, ("sizes", "type"), _tensor, lambda type_: (type_.dimensions, type_.element)),
    Coding(
        "tensor with an encoding", 14, ("attribute", "sizes", "type"), _encoded_tensor,
        lambda type_: (type_.encoding, type_.dimensions, type_.element),
    ),
    Coding("tuple", 15, ("types",), Tuple, lambda type_: (type_.elements,)),
)  # fmt: skip

_ATTRIBUTE_OF = {
    tuple: "array", dict: "dictionary", str: "string", TypeAttribute: "type", Unit: "unit", Integer: "integer",
    Float: "float", DenseArray: "dense array", Dense: "dense elements", bool: "boolean",
}  # fmt: skip
_BOOLEAN = Coding("boolean", 8, ("number",), integer_attribute, lambda value: ((ElementType.PRED, int(value)),))


class Builtin:
    """The builtin dialect, for files of all versions."""

    name = "builtin"

    def __init__(self) -> None:
        self.attributes: dict[int, Coding] = {coding.code: coding for coding in ATTRIBUTES}
        self.types: dict[int, Coding] = {coding.code: coding for coding in TYPES}
        self._attributes = {coding.name: coding for coding in (*ATTRIBUTES, _BOOLEAN)}
        self._types = {coding.name: coding for coding in TYPES}

    def attribute_coding(self, value: Any) -> Coding:
        """How an attribute is written; UnsupportedError if the dialect has no such attribute."""
        if isinstance(value, Symbol):
            return self._attributes["symbol" if len(value.names) == 1 else "nested symbol"]
        name = _ATTRIBUTE_OF.get(type(value))
        if name is None:
            raise UnsupportedError(f"the attribute {value} in bytecode")
        return self._attributes[name]

    def type_coding(self, value: Any) -> Coding | None:
        """How a type is written, or None for an OtherType, which is written as text; UnsupportedError if the dialect
        has no such type."""
        name = ""
        if isinstance(value, OtherType):
            return None
        if isinstance(value, ElementType):
            if value.is_complex:
                name = "complex"
            elif value in _FLOATS.values():
                name = value.value
            elif not value.is_floating:
                name = "integer"
        elif isinstance(value, Tensor):
            name = "tensor" if value.encoding is None else "tensor with an encoding"
        else:
            name = _TYPE_OF.get(type(value), "")
        if not name:
            raise UnsupportedError(f"the type {value} in bytecode")
        return self._types[name]

    def properties(self, operation: str) -> tuple[tuple[str, bool], ...] | None:
        """The names of an operation's properties in the order of the bytes, and whether each may be missing."""
        return (("sym_name", True), ("sym_visibility", True)) if operation == "builtin.module" else None


_TYPE_OF = {IndexType: "index", Function: "function", NoneType: "none", Tuple: "tuple"}

# Locations. `bytecode_locations.py` reads those that contain others.
CALL_SITE, FILE, FUSED, FUSED_WITH_METADATA, NAMED, UNKNOWN, RANGE = 10, 11, 12, 13, 14, 15, 22

LOCATIONS = {
    "unknown": Coding("unknown location", UNKNOWN, (), lambda: None, lambda value: ()),
    "file": Coding(
        "file location", FILE, ("text", "varint", "varint"), lambda *values: Location("", *values),
        lambda value: (value.file, value.line, value.column),
    ),
    "name": Coding(
        "named location", NAMED, ("text", "location"), lambda name, child: name,
        lambda value: (value.name, Location("", value.file, value.line, value.column) if value.file else None),
    ),
}  # fmt: skip

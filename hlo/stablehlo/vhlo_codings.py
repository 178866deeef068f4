"""The attributes and types of VHLO, StableHLO's portable form: codes, layouts, and the versions that have them.

VHLO is StableHLO with versions. Source: stablehlo/dialect/VhloBytecode.cpp (codes), VhloAttrs.td and VhloTypes.td
(first versions), VhloEnums.td (numbers of enumerations), VhloTypes.cpp (which builtin type each is).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..mlir.attribute_reader import read_type
from ..mlir.attribute_writer import type_text
from ..mlir.builtin_bytecode import complex_type, float_attribute, integer_attribute, real_type
from ..mlir.bytecode_fields import Coding
from ..mlir.bytecode_tensors import blob_of, dense_of, dtype_of
from ..mlir.tree import (
    Dense,
    DenseArray,
    Enumerated,
    Float,
    Function,
    IndexType,
    Integer,
    NoneType,
    Opaque,
    OtherType,
    Quantized,
    Record,
    Symbol,
    Tensor,
    Token,
    Tuple,
    TypeAttribute,
)
from .vhlo_ops import property_names
from .vhlo_quantized import quantized, quantized_axis, quantized_fields

_ENUMERATIONS: tuple[tuple[int, str, tuple[int, int], dict[int, str]], ...] = (
    (3, "comparison_direction", (0, 9), dict(enumerate(("EQ", "NE", "GE", "GT", "LE", "LT")))),
    (4, "comparison_type", (0, 9), dict(enumerate(("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")))),
    (7, "fft_type", (0, 9), dict(enumerate(("FFT", "IFFT", "RFFT", "IRFFT")))),
    (11, "precision", (0, 9), dict(enumerate(("DEFAULT", "HIGH", "HIGHEST")))),
    (12, "rng_algorithm", (0, 9), dict(enumerate(("DEFAULT", "THREE_FRY", "PHILOX")))),
    (13, "rng_distribution", (0, 9), {1: "UNIFORM", 2: "NORMAL"}),
    (16, "transpose", (0, 9), dict(enumerate(("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")))),
    (19, "result_accuracy_mode", (1, 9), dict(enumerate(("DEFAULT", "HIGHEST", "TOLERANCE")))),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """The API version of a custom call: an integer in StableHLO, and an enumeration with the same numbers in VHLO."""

    number: int


class TooNewError(UnsupportedError):
    """The target version of StableHLO lacks something; version `since` has it."""

    def __init__(self, what: str, since: tuple[int, int]) -> None:
        self.since = since
        super().__init__(f"{what} needs StableHLO {since[0]}.{since[1]}.0 or a later version")



def _enumeration(code: int, kind: str, since: tuple[int, int], names: dict[int, str]) -> Coding:
    numbers = {name: number for number, name in names.items()}

    def make(number: int) -> Enumerated:
        if number not in names:
            raise ValueError(f"the value {number}")
        return Enumerated("stablehlo", kind, names[number])

    def take(value: Enumerated) -> tuple[int]:
        if value.value not in numbers:
            raise UnsupportedError(f"#stablehlo<{kind} {value.value}>")
        return (numbers[value.value],)

    return Coding(kind, code, ("varint",), make, take, since)


def _record(kind: str, *names: str) -> tuple[Any, Any]:
    """From and to a record with all of these fields; a field that is None is missing."""

    def make(*values: Any) -> Record:
        return Record("stablehlo", kind, {n: value for n, value in zip(names, values) if value is not None})

    return make, lambda record: tuple(record.fields.get(name) for name in names)


def _accuracy(atol: float, rtol: float, ulps: int, mode: Any) -> Record:
    fields: dict[str, Any] = {name: _double(value) for name, value in (("atol", atol), ("rtol", rtol)) if value}
    if ulps:
        fields["ulps"] = ulps
    return Record("stablehlo", "result_accuracy", fields | {"mode": mode})


def _accuracy_fields(record: Record) -> tuple[Any, ...]:
    atol, rtol = (_float(record.fields[name]) if name in record.fields else 0.0 for name in ("atol", "rtol"))
    return atol, rtol, record.fields.get("ulps", 0), record.fields["mode"]


def _double(value: float) -> Float:
    return Float(int(np.float64(value).view(np.uint64)), ElementType.F64)


def _float(value: Float) -> float:
    return float(np.uint64(value.bits).view(np.float64))


def _integer_number(value: Integer) -> tuple[tuple[Any, int]]:
    if isinstance(value.type, ElementType) and value.type.bit_width < 4:
        raise UnsupportedError(f"an attribute of type {value.type.value} in StableHLO's portable form")
    return ((value.type, value.value),)


def _mesh(mesh: Any, axes: Any) -> Record:
    mesh = Symbol((mesh,)) if isinstance(mesh, str) else mesh
    return Record("stablehlo", "replica_group_mesh_axes", {"mesh": mesh, "axes": axes})


_ATTRIBUTES = (
    Coding("array", 1, ("attributes",), lambda values: values, lambda values: (values,)),
    Coding("boolean", 2, ("varint",), bool, lambda value: (int(value),)),
    Coding("dictionary", 6, ("pairs",), lambda items: items, lambda items: (items,)),
    Coding("float", 8, ("number",), float_attribute, lambda value: ((value.type, value.bits),)),
    Coding("integer", 9, ("number",), integer_attribute, _integer_number),
    Coding(
        "output_operand_alias", 10, ("signeds", "signed", "signeds"),
        *_record("output_operand_alias", "output_tuple_indices", "operand_index", "operand_tuple_indices"),
    ),
    Coding("string", 14, ("string",), lambda text: text, lambda text: (text,)),
    Coding("tensor", 15, ("type", "blob"), dense_of, lambda value: (value.type, blob_of(value))),
    Coding("type", 17, ("type",), TypeAttribute, lambda value: (value.type,)),
    Coding("bounds", 18, ("sizes",), *_record("bounds", "bounds")),
    Coding("result_accuracy", 20, ("double", "double", "signed", "attribute"), _accuracy, _accuracy_fields, (1, 9)),
    Coding("sub_axis_info", 21, ("signed", "signed"), *_record("sub_axis_info", "pre_size", "size"), (1, 16)),
    Coding("axis_ref", 22, ("text", "optional after a flag"), *_record("axis_ref", "name", "sub_axis_info"), (1, 16)),
    Coding(
        "replica_group_mesh_axes", 23, ("attribute", "attribute"), _mesh,
        _record("replica_group_mesh_axes", "mesh", "axes")[1], (1, 16),
    ),
    Coding("mesh_axis", 24, ("text", "signed"), *_record("mesh_axis", "name", "size"), (1, 16)),
    Coding("mesh", 25, ("attribute", "optional"), *_record("mesh", "axes", "device_ids"), (1, 16)),
    *(_enumeration(*each) for each in _ENUMERATIONS),
)  # fmt: skip
_API_VERSION = Coding(
    "api_version", 5, ("varint",), lambda number: Integer(number, ElementType.S32), lambda value: (value.number,)
)
_ATTRIBUTE_OF = {
    tuple: "array", bool: "boolean", dict: "dictionary", Float: "float", Integer: "integer", str: "string",
    Dense: "tensor", DenseArray: "dense array", TypeAttribute: "type", Symbol: "symbol", ApiVersion: "api_version",
}  # fmt: skip
_SYMBOL = Coding("symbol", 14, ("string",), lambda text: text, lambda symbol: ("::".join(symbol.names),))
"""Names of functions are strings."""
_DENSE_ARRAY = Coding("dense array", 15, ("type", "blob"), dense_of, lambda value: _as_tensor(value))


def _as_tensor(value: DenseArray) -> tuple[Tensor, bytes | memoryview]:
    type_ = Tensor((len(value.values),), value.element)
    return type_, blob_of(Dense(type_, np.array(value.values, dtype_of(value.element))))


_SCALARS: dict[int, tuple[Any, tuple[int, int]]] = {
    0: (ElementType.PRED, (0, 9)), 2: (ElementType.BF16, (0, 9)), 3: (ElementType.F16, (0, 9)),
    4: (ElementType.F32, (0, 9)), 5: (ElementType.F64, (0, 9)), 6: (ElementType.F8E4M3FN, (0, 9)),
    7: (ElementType.F8E5M2, (0, 9)), 9: (IndexType(), (0, 9)), 10: (ElementType.S4, (0, 9)),
    11: (ElementType.S8, (0, 9)), 12: (ElementType.S16, (0, 9)), 13: (ElementType.S32, (0, 9)),
    14: (ElementType.S64, (0, 9)), 15: (ElementType.U4, (0, 9)), 16: (ElementType.U8, (0, 9)),
    17: (ElementType.U16, (0, 9)), 18: (ElementType.U32, (0, 9)), 19: (ElementType.U64, (0, 9)), 22: (Token(), (0, 9)),
    26: (OtherType("!shape.witness"), (0, 9)), 27: (ElementType.F8E4M3FNUZ, (0, 10)),
    28: (ElementType.F8E5M2FNUZ, (0, 10)), 29: (ElementType.F8E4M3B11FNUZ, (0, 11)), 31: (ElementType.S2, (1, 2)),
    32: (ElementType.U2, (1, 2)), 33: (NoneType(), (1, 6)), 34: (OtherType("tf32"), (1, 6)),
    35: (ElementType.F8E4M3, (1, 7)), 36: (ElementType.F8E3M4, (1, 7)), 37: (ElementType.F4E2M1FN, (1, 8)),
    38: (OtherType("f6E2M3FN"), (1, 8)), 39: (OtherType("f6E3M2FN"), (1, 8)), 40: (ElementType.F8E8M0FNU, (1, 8)),
}  # fmt: skip
_CODE_OF = {type_: code for code, (type_, _) in _SCALARS.items()}


def _scalar(code: int) -> Coding:
    type_, since = _SCALARS[code]
    return Coding(type_text(type_), code, (), lambda: type_, lambda value: (), since)


def _tensor(dimensions: tuple[int, ...], element: Any) -> Tensor:
    if not isinstance(element, (ElementType, Quantized, IndexType, OtherType)):
        raise ValueError(f"a tensor of {type_text(element)}")
    return Tensor(dimensions, element)


def _encoded_tensor(encoding: Any, dimensions: tuple[int, ...], element: Any) -> Tensor:
    if not isinstance(encoding, Opaque) and not (isinstance(encoding, Record) and encoding.kind == "bounds"):
        raise ValueError("an encoding of another kind")
    return Tensor(dimensions, _tensor((), element).element, encoding)


def _element_of_unranked(type_: OtherType) -> tuple[Any]:
    return (read_type(type_.text.removeprefix("tensor<*x")[:-1]),)


def _buffer_parts(type_: OtherType) -> tuple[Any, ...]:
    found = read_type(type_.text.replace("memref", "tensor", 1))
    if not isinstance(found, Tensor) or found.encoding is not None:
        raise UnsupportedError(f"the type {type_.text} in StableHLO's portable form")
    return found.dimensions, found.element


def _future_types(type_: OtherType) -> tuple[Any]:
    found = read_type(type_.text.replace("!stablehlo.future", "tuple", 1))
    assert isinstance(found, Tuple), "the text of a tuple is a tuple"
    return (found.elements,)


_TYPES = (
    *map(_scalar, _SCALARS),
    Coding("complex", 1, ("type",), complex_type, lambda type_: (real_type(type_),)),
    Coding("function", 8, ("types", "types"), Function, lambda type_: (type_.inputs, type_.results)),
    Coding("tensor", 20, ("sizes", "type"), _tensor, lambda type_: (type_.dimensions, type_.element)),
    Coding(
        "tensor with an encoding", 21, ("attribute", "sizes", "type"), _encoded_tensor,
        lambda type_: (type_.encoding, type_.dimensions, type_.element),
    ),
    Coding("tuple", 23, ("types",), Tuple, lambda type_: (type_.elements,)),
    Coding(
        "quant", 24, ("varint", "type", "type", "double", "signed", "signed", "signed"), quantized, quantized_fields,
    ),
    Coding(
        "quant of an axis", 30, ("varint", "type", "type", "varint", "signed", "signed", "doubles", "signeds"),
        quantized_axis, quantized_fields, (0, 18),
    ),
    Coding(
        "tensor<*x", 25, ("type",), lambda element: OtherType(f"tensor<*x{type_text(element)}>"), _element_of_unranked,
    ),
    Coding(
        "memref<", 41, ("sizes", "type"),
        lambda sizes, element: OtherType(type_text(_tensor(sizes, element)).replace("tensor", "memref", 1)),
        _buffer_parts, (1, 13),
    ),
    Coding(
        "!stablehlo.future<", 42, ("types",),
        lambda types: OtherType(f"!stablehlo.future<{', '.join(map(type_text, types))}>"), _future_types, (1, 15),
    ),
)  # fmt: skip


_TYPE_OF = {Function: "function", Tuple: "tuple"}
_NAMED = ("tensor<*x", "memref<", "!stablehlo.future<")


class Vhlo:
    """The dialect, as a version of StableHLO has it; the newest one when a file is read."""

    name = "vhlo"

    def __init__(self, version: tuple[int, int] = (1 << 30, 0)) -> None:
        self.attributes: dict[int, Coding] = {coding.code: coding for coding in (*_ATTRIBUTES, _API_VERSION)}
        self.types: dict[int, Coding] = {coding.code: coding for coding in _TYPES}
        self._version = version
        self._attributes = {coding.name: coding for coding in (*_ATTRIBUTES, _API_VERSION, _SYMBOL, _DENSE_ARRAY)}
        self._types = {coding.name: coding for coding in _TYPES}

    def _checked(self, coding: Coding) -> Coding:
        if coding.since > self._version:
            raise TooNewError(coding.name, coding.since)
        return coding

    def attribute_coding(self, value: Any) -> Coding:
        """How an attribute is written; UnsupportedError if the dialect has no such attribute."""
        name = value.kind if isinstance(value, (Enumerated, Record)) else _ATTRIBUTE_OF.get(type(value))
        coding = self._attributes.get(name) if name is not None else None
        if coding is None:
            raise UnsupportedError(f"the attribute {value} in StableHLO's portable form")
        return self._checked(coding)

    def type_coding(self, value: Any) -> Coding | None:
        """How a type is written; UnsupportedError if the dialect has no such type."""
        if isinstance(value, ElementType) and value.is_complex:
            return self._types["complex"]
        if isinstance(value, Tensor):
            return self._types["tensor" if value.encoding is None else "tensor with an encoding"]
        if isinstance(value, Quantized):
            return self._checked(self._types["quant of an axis" if "{" in value.text else "quant"])
        name = _TYPE_OF.get(type(value))
        if name is None and value in _CODE_OF:
            return self._checked(self.types[_CODE_OF[value]])
        if isinstance(value, OtherType):  # it begins with its name
            name = next((each for each in _NAMED if value.text.startswith(each)), None)
        if name is None:
            raise UnsupportedError(f"the type {type_text(value)} in StableHLO's portable form")
        return self._checked(self._types[name])

    def properties(self, operation: str) -> tuple[tuple[str, bool], ...] | None:
        """The names of an operation's properties in the order of the bytes; None for an unknown operation."""
        return property_names(operation)

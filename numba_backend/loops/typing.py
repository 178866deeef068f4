"""Infer the types of loop programs' expressions, with Numba's rules.

A type is named as Numba names it: ``int8`` ... ``uint64``, ``float32``, ``float64``, ``complex64``, ``complex128``,
``bool``. A pointer to elements of a type, and a local array of them, have the name of the type with a ``*``.
"""

from __future__ import annotations

from collections.abc import Sequence

SCALARS = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
"""The numbers; each is also the name of a cast."""

BITS = {name: int(name.lstrip("uintfloacmpex")) for name in SCALARS}
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))

SHORT = {
    "pred": "uint8", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "uint16", "bf16": "uint16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""The type in memory of each element type of XLA that is not smaller than a byte."""

_FIXED = {
    "is_finite": "uint8", "pred": "uint8", "logical_not": "uint8", "reduce_precision_f16": "uint16",
    "interrupted": "bool", "all_finite": "bool", "likely": "bool", "eq": "uint8", "ne": "uint8", "lt": "uint8",
    "le": "uint8", "gt": "uint8", "ge": "uint8",
}  # fmt: skip
_PART = {"complex64": "float32", "complex128": "float64"}
_WHOLE = {"float32": "complex64", "float64": "complex128"}


class TypeUnknown(Exception):
    """An expression that is not typed."""


def pointer_to(type_: str) -> str:
    """The type of a pointer to elements of a type."""
    return type_ + "*"


def pointee(type_: str) -> str:
    """The type of the elements that a pointer points to."""
    assert type_.endswith("*"), f"{type_} is no pointer"
    return type_[:-1]


def is_float(type_: str) -> bool:
    """True for real floating-point types."""
    return type_.startswith("float")


def is_integer(type_: str) -> bool:
    """True for integer types; not for bool."""
    return type_.startswith(("int", "uint"))


def type_of_binary(op: str, a: str, b: str) -> str:
    """The type of ``a op b``."""
    if op in _COMPARISONS or op in ("and", "or"):
        return "bool"
    if a.startswith("complex") or b.startswith("complex"):
        return "complex64" if {a, b} <= {"complex64", "float32"} else "complex128"
    if is_float(a) or is_float(b):
        return "float32" if a == b == "float32" else "float64"
    if op == "/":
        return "float64"
    if a == b == "bool" and op in ("&", "|", "^"):
        return "bool"
    if op in ("<<", ">>"):
        return "uint64" if a.startswith("uint") else "int64"
    unsigned = [t.startswith("uint") for t in (a, b)]
    if all(unsigned):
        return "uint64"
    if any(unsigned) and "uint64" in (a, b):
        return "uint64" if op in ("&", "|", "^") else "float64"
    return "int64"


def type_of_unary(op: str, a: str) -> str:
    """The type of ``op a``."""
    if op == "not":
        return "bool"
    if is_integer(a) or a == "bool":
        return "uint64" if a.startswith("uint") else "int64"
    return a


def type_of_call(function: str, arguments: Sequence[str]) -> str:
    """The type of the result of a function of the dialect."""
    if function in BITS:
        return function
    fixed = _FIXED.get(function)
    if fixed is not None:
        return fixed
    if function.startswith(("convert_", "bitcast_")):
        return _memory_type(function.rsplit("_", 1)[1])
    if "_to_" in function:
        return _memory_type(function.rsplit("_to_", 1)[1])
    if not arguments:
        if function == "cycles":
            return "int64"
        raise TypeUnknown(function)
    if function == "select":
        return arguments[1]
    if function in ("total_order_key", "maximum_key", "minimum_key"):
        return "int32" if arguments[0] == "float32" else "int64"
    if function == "from_key":
        return "float32" if arguments[0] == "int32" else "float64"
    if function in ("real", "imag", "abs"):
        return _PART.get(arguments[0], arguments[0])
    if function == "complex_from":
        return _WHOLE[arguments[0]]
    return arguments[0]


def _memory_type(name: str) -> str:
    if name == "odd_f32":
        return "float32"
    return SHORT.get(name, "uint8")  # smaller types are stored in a byte

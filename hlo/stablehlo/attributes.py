"""Conversion between values of fields and MLIR attributes.

Older versions wrote `dense<[0, 1]> : tensor<2xi64>` where newer ones write `array<i64: 0, 1>`: a converter reads both,
and writes the newer one. A value that is missing is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..mlir.tree import (
    Attribute,
    Dense,
    DenseArray,
    Enumerated,
    Float,
    Integer,
    Symbol,
    Tensor,
    Unit,
)
from ..sizes import is_symbolic


class AttributeConverter(NamedTuple):
    """Reads the value of a field from an attribute, and writes it as one."""

    read: Callable[[Attribute], Any]
    write: Callable[[Any], Attribute]


def wrong(attribute: object, expected: str) -> UnsupportedError:
    """The error for an attribute of another kind than expected."""
    return UnsupportedError(f"expected {expected}, found the attribute {str(attribute)[:80]}")


def read_integer(attribute: object) -> int:
    """The number of `3 : i64`, or of a number inside of a record."""
    match attribute:
        case Integer():
            return attribute.value
        case bool():
            return int(attribute)
        case int():
            return attribute
        case Dense() if attribute.array.size == 1:
            return int(attribute.array.reshape(()))
    raise wrong(attribute, "an integer")


_MOST_NUMBERS = 1 << 20
"""In an attribute: one number in text may stand for any number of them."""


def read_integers(attribute: object) -> tuple[int, ...]:
    """The numbers of `array<i64: 0, 1>`, `dense<[0, 1]>` or `[0, 1]`."""
    match attribute:
        case DenseArray():
            return tuple(map(int, attribute.values))
        case Dense() if attribute.array.size <= _MOST_NUMBERS:
            return tuple(map(int, attribute.array.reshape(-1).tolist()))
        case tuple():
            return tuple(map(read_integer, attribute))
    raise wrong(attribute, "a list of integers")


def read_boolean(attribute: object) -> bool:
    """`true`, or an attribute that says something by being there."""
    match attribute:
        case bool():
            return attribute
        case Unit():
            return True
        case Integer() | Dense():
            return bool(read_integer(attribute))
    raise wrong(attribute, "true or false")


def read_booleans(attribute: object) -> tuple[bool, ...]:
    """`array<i1: true, false>`, or its older form."""
    if isinstance(attribute, tuple):
        return tuple(map(read_boolean, attribute))
    return tuple(map(bool, read_integers(attribute)))


def read_float(attribute: object) -> float:
    """The number of `1.0 : f32`."""
    match attribute:
        case Float():
            width = attribute.type.byte_width
            value = np.frombuffer(attribute.bits.to_bytes(width, "little"), attribute.type.dtype)[0]
            return float(value)
        case Integer():
            return float(attribute.value)
        case float() | int():
            return float(attribute)
    raise wrong(attribute, "a number")


def read_string(attribute: object) -> str:
    """The text of `"a"`."""
    if not isinstance(attribute, str):
        raise wrong(attribute, "a string")
    return attribute


def read_word(attribute: object) -> str:
    """The value of `#stablehlo<fft_type FFT>`; inside of a record also the bare word."""
    match attribute:
        case Enumerated():
            return attribute.value
        case str():
            return attribute
    raise wrong(attribute, "a word of an enumeration")


def function_name(attribute: object) -> str:
    """The name in `@f`."""
    if not isinstance(attribute, Symbol) or len(attribute.names) != 1:
        raise wrong(attribute, "the name of a function, @f")
    return attribute.names[0]


def integer(value: int, type_: ElementType = ElementType.S64) -> Integer:
    """`3 : i64`"""
    return Integer(value, type_)


def integers(values: Sequence[int]) -> DenseArray:
    """`array<i64: 0, 1>`"""
    return DenseArray(ElementType.S64, tuple(values))


def float_of(value: float, type_: ElementType = ElementType.F32) -> Float:
    """`1.0 : f32`"""
    return Float(int.from_bytes(np.asarray(value, type_.dtype).tobytes(), "little"), type_)


def table(rows: Sequence[Sequence[int]], columns: int = 0) -> Dense:
    """`dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`. `columns`: their number where there is no row. Shorter rows are
    filled with -1, as replica groups are. The array is one of objects if a number is symbolic."""
    columns = max([len(row) for row in rows], default=columns)
    kind = object if any(is_symbolic(n) for row in rows for n in row) else np.int64
    array = np.full((len(rows), columns), -1, kind)
    for k, row in enumerate(rows):
        array[k, : len(row)] = row
    return Dense(Tensor(array.shape, ElementType.S64), array)


_LARGEST_DEVICE = 2**31 - 1


def read_table(attribute: object) -> list[tuple[int, ...]]:
    """The rows of a two-dimensional `dense`; negative numbers, which fill up a row, are left out."""
    if not isinstance(attribute, Dense) or attribute.array.size > _MOST_NUMBERS:
        raise wrong(attribute, "dense rows of integers")
    array = attribute.array
    if array.dtype.kind not in "iu" or (array.ndim != 2 and array.size % 2) or (array > _LARGEST_DEVICE).any():
        raise wrong(attribute, "dense rows of numbers of devices")
    if array.ndim != 2:
        array = array.reshape(-1, 2) if array.size else array.reshape(0, 2)
    return [tuple(int(number) for number in row if number >= 0) for row in array.tolist()]


INTEGER64 = AttributeConverter(read_integer, integer)
INTEGER32 = AttributeConverter(read_integer, lambda value: integer(value, ElementType.S32))
INTEGERS = AttributeConverter(read_integers, integers)
BOOLEAN = AttributeConverter(read_boolean, bool)
UNIT = AttributeConverter(read_boolean, lambda value: Unit())
"""True is an attribute without a value; False is none."""
BOOLEANS = AttributeConverter(read_booleans, lambda values: DenseArray(ElementType.PRED, tuple(values)))
FLOAT32 = AttributeConverter(read_float, float_of)
STRING = AttributeConverter(read_string, str)


def words(kind: str, names: type[Enum] | dict[str, Any], dialect: str = "stablehlo") -> AttributeConverter:
    """`#stablehlo<kind NAME>` for the members of an enumeration, or the values of a dictionary by their names."""
    members: dict[str, Any] = dict(names.__members__) if isinstance(names, type) else names
    by_value = {value: name for name, value in members.items()}

    def read(attribute: object) -> Any:
        word = read_word(attribute)
        if word not in members:
            raise wrong(attribute, f"one of {', '.join(members)} as {kind}")
        return members[word]

    return AttributeConverter(read, lambda value: Enumerated(dialect, kind, by_value[value]))


_CONVERTERS: dict[object, AttributeConverter] = {
    int: INTEGER64, tuple[int, ...]: INTEGERS, bool: BOOLEAN, str: STRING, float: FLOAT32
}  # fmt: skip


def converter_of(type_: Any, name: str) -> AttributeConverter:
    """The converter for a field's type. `name` is the kind of an enumeration."""
    if isinstance(type_, type) and issubclass(type_, Enum):
        return words(name, type_)
    return _CONVERTERS[type_]

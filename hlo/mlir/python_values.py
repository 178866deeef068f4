"""Attributes as Python's values, and Python's values as attributes: the parameters of custom calls and of composites.

| Python | MLIR |
|---|---|
| `True`, `"text"` | `true`, `"text"` |
| `2`, `0.5` | `2 : i64`, `5.000000e-01 : f64` |
| a NumPy number | a number of its type |
| a NumPy array | `dense<[1, 2]> : tensor<2xi32>` |
| a dtype | its type, `f32` |
| a list, a tuple | `[1, "a"]` |
| a dictionary | `{a = 1 : i64}` |

`array<i64: 1, 2>` is read as a tuple, `unit` as True, and an attribute of any other kind, e.g. a symbol, as its text.
Source: JAX's `ir_attribute`, and MLIR's language reference, "Attribute Value Syntax".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from .attribute_reader import read_attributes
from .attribute_writer import AttributeWriter
from .elements import bits_of, from_bits
from .tree import Attribute, Dense, DenseArray, Float, IndexType, Integer, Tensor, TypeAttribute, Unit

_WRITER = AttributeWriter({})
attribute_text = _WRITER.text
"""The text of an attribute. UnsupportedError for a Record."""


def read_values(text: str) -> dict[str, Any]:
    """The values of a dictionary by key. HloParseError, a ValueError, if it is malformed."""
    return {key: value_of(attribute) for key, attribute in read_attributes(text).items()}


def write_values(values: Mapping[str, Any]) -> str:
    """The dictionary with these values, in the order of its keys; `read_values` gives them back. TypeError as
    `attribute_of`."""
    return _WRITER.dictionary({key: attribute_of(f"the attribute {key!r}", value) for key, value in values.items()})


def value_of(attribute: Attribute) -> Any:
    """Python's value of an attribute. An array is NumPy's, of the attribute's type, and must not be changed."""
    match attribute:
        case bool() | str():
            return attribute
        case Unit():
            return True
        case Integer():
            return integer_of(attribute)
        case Float():
            return float(from_bits(attribute.bits, attribute.type).astype(np.float64))
        case tuple():
            return tuple(map(value_of, attribute))
        case dict():
            return {key: value_of(value) for key, value in attribute.items()}
        case DenseArray():
            return attribute.values
        case Dense():
            return attribute.array
    return attribute_text(attribute)


def integer_of(attribute: Integer) -> int:
    """The number of an attribute: `255 : i8` is -1."""
    if isinstance(attribute.type, IndexType) or attribute.value <= attribute.type.limits[1]:
        return attribute.value
    return attribute.value - (1 << attribute.type.bit_width)


def attribute_of(what: str, value: Any) -> Attribute:
    """The attribute of a value. `what` is named in messages. TypeError for a value of another kind, and for a key that
    is no string; OverflowError for a Python integer of more than 64 bits."""
    match value:
        case bool():
            return value
        case str():
            return str(value)
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case np.generic():
            return _number(what, value)
        case int():
            return _number(what, np.int64(value))
        case float():
            return _number(what, np.float64(value))
        case np.dtype():
            return TypeAttribute(element_type_of(value))
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(f"{what} has the key {key!r}: the keys of a dictionary must be strings")
            return {key: attribute_of(f"{what}[{key!r}]", inner) for key, inner in value.items()}
        case list() | tuple():
            return tuple([attribute_of(what, inner) for inner in value])
    try:
        element = element_type_of(value.dtype)
    except (AttributeError, TypeError):
        raise TypeError(f"{what} cannot be a {type(value).__name__}: {value!r}") from None
    array = np.asarray(value)
    return Dense(Tensor(array.shape, element), array)


def _number(what: str, value: np.generic) -> Attribute:
    element = element_type_of(value.dtype)
    if element is ElementType.PRED:
        return bool(value)
    if element.is_complex:
        raise TypeError(f"{what} cannot be complex: {value!r}")
    if element.is_floating:
        return Float(int(bits_of(np.asarray(value).reshape(1))[0]), element)
    return Integer(int(value), element)

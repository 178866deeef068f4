"""The attributes of a typed call in memory, as handlers read them: sorted by name, each with its kind.

A number is a scalar of its type; an array, MLIR's `array<i64: 1, 2>` and `dense<...> : tensor<...>`, has one dimension
for handlers; a dictionary holds further attributes. XLA refuses MLIR's other attributes, and so does this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from ..errors import UnsupportedError
from ..mlir.elements import from_bits
from ..mlir.python_values import attribute_text, integer_of
from ..mlir.tree import Attribute, Dense, DenseArray, Float, IndexType, Integer, Unit
from .memory import Memory
from .structs import ARRAY, ATTRS_WORDS, DATA_TYPES, DICTIONARY, SCALAR, STRING, WORD


def attribute_words(memory: Memory, attributes: Mapping[str, Attribute]) -> list[int]:
    """The words of the structure Attrs; what they point to is put into `memory`. UnsupportedError for an attribute that
    handlers cannot get."""
    kinds, names, values = [], [], []
    for name in sorted(attributes, key=str.encode):
        kind, value = _attribute(memory, name, attributes[name])
        kinds.append(kind)
        names.append(_span(memory, name))
        values.append(value)
    pointers = [memory.numbers(kinds), memory.words(names), memory.words(values)]
    return [ATTRS_WORDS * WORD, 0, len(kinds), *pointers]


def _span(memory: Memory, text: str) -> int:
    data = text.encode("utf-8", "surrogateescape")
    return memory.words([memory.data(data), len(data)])


def _attribute(memory: Memory, name: str, attribute: Attribute) -> tuple[int, int]:
    """The kind of an attribute, and the address of its structure."""
    if isinstance(attribute, dict):
        return DICTIONARY, memory.words(attribute_words(memory, attribute))
    if isinstance(attribute, str):
        return STRING, _span(memory, attribute)
    array = _numbers(attribute)
    dtype = None if array is None else DATA_TYPES.get(element_type_of(array.dtype))
    if array is None or dtype is None:
        shown = attribute_text(attribute)
        why = f"the attribute {name!r}, {shown}, is none that XLA's typed FFI passes to handlers"
        raise UnsupportedError(f"{why}; an array of NumPy is" if isinstance(attribute, tuple) else why)
    data = memory.data(array.tobytes())
    if isinstance(attribute, Dense | DenseArray):
        return ARRAY, memory.words([dtype, array.size, data])
    return SCALAR, memory.words([dtype, data])


def _numbers(attribute: Attribute) -> np.ndarray[Any, Any] | None:
    """A number or the numbers of an array; None for an attribute without any."""
    match attribute:
        case bool() | Unit():
            return np.array(attribute is not False)
        case Integer():
            element = ElementType.S64 if isinstance(attribute.type, IndexType) else attribute.type
            return np.array(integer_of(attribute), element.dtype)
        case Float():
            return from_bits(attribute.bits, attribute.type)
        case DenseArray():
            return np.array(attribute.values, attribute.element.dtype)
        case Dense():
            return np.asarray(attribute.array, order="C")
    return None

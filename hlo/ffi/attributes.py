"""The attributes of a typed call in memory, as handlers read them: sorted by name, each with its kind.

A number is a scalar of its type; an array, MLIR's `array<i64: 1, 2>` and `dense<...> : tensor<...>`, has one dimension
for handlers; a dictionary holds further attributes. XLA refuses MLIR's other attributes, and so does this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..custom_call_targets.config import DenseArray, Unread
from ..element_type import element_type_of
from ..errors import UnsupportedError
from .memory import Memory
from .structs import ARRAY, ATTRS_WORDS, DATA_TYPES, DICTIONARY, SCALAR, STRING, WORD


def attribute_words(memory: Memory, attributes: Mapping[str, Any]) -> list[int]:
    """The words of the structure Attrs, for typed values as `read_typed_config` gives them; what they point to is put
    into `memory`. UnsupportedError for a value that handlers cannot get."""
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


def _attribute(memory: Memory, name: str, value: Any) -> tuple[int, int]:
    """The kind of a value, and the address of its structure."""
    if isinstance(value, DenseArray):
        value = np.array(value, value.element_type.dtype)
    if isinstance(value, Unread | tuple):
        shown = value if isinstance(value, Unread) else "a list"
        raise UnsupportedError(f"the attribute {name!r}, {shown}, is none that XLA's typed FFI passes to handlers")
    if isinstance(value, dict):
        return DICTIONARY, memory.words(attribute_words(memory, value))
    if isinstance(value, str):
        return STRING, _span(memory, value)
    array = np.asarray(value, order="C")
    dtype = DATA_TYPES[element_type_of(array.dtype)]
    data = memory.data(array.tobytes())
    if isinstance(value, np.generic):
        return SCALAR, memory.words([dtype, data])
    return ARRAY, memory.words([dtype, array.size, data])

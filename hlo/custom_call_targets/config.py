"""The backend_config of a custom call as Python values.

A typed call (API_VERSION_TYPED_FFI) has an MLIR dictionary: `{uplo = 76 : ui8, scale = 0.5 : f32, name = "a"}`.
Integers become int, floats float, `true` and `false` bool, strings str, `array<i64: 1, 2>` and `[1, 2]` tuples,
dictionaries dict, `dense<[1, 2]> : tensor<2xi64>` a NumPy array, a key without a value True. Anything else (types,
symbols) stays text. Source: MLIR's language reference, "Attribute Value Syntax".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from ..mlir.elements import ELEMENT_TYPES, number_text, type_name
from ..text.mlir_dictionary import key_text, quoted, read_dictionary_raw, read_string

_TYPE = r"[a-z]+[0-9]+\w*"
_NUMBER = re.compile(rf"(0x[0-9A-Fa-f]+|-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)\s*(?::\s*({_TYPE}|index))?")
_ARRAY = re.compile(rf"array<\s*({_TYPE})\s*(?::(.*))?>", re.DOTALL)
_DENSE = re.compile(rf"dense<(.*)>\s*:\s*tensor<((?:[0-9]+x)*)({_TYPE})>", re.DOTALL)


MAX_DEPTH = 16


class Unread(str):
    """The text of an attribute of a kind that is not read: a type, a symbol."""

    __slots__ = ()


class DenseArray(tuple[Any, ...]):
    """The numbers of `array<i64: 1, 2>`; each has the type of all."""

    element_type: ElementType


def read_config(text: str) -> dict[str, Any]:
    """The values of an MLIR dictionary by key. ValueError if it is malformed, or nested deeper than MAX_DEPTH."""
    return {key: _plain(value) for key, value in read_typed_config(text).items()}


def read_typed_config(text: str, depth: int = 0) -> dict[str, Any]:
    """As `read_config`, with NumPy's numbers of the types that the text states (bool_ for i1), a `DenseArray`, and
    `Unread` for attributes that are not read."""
    return {key: _value(value, depth + 1) for key, value in read_dictionary_raw(text)}


def _plain(value: Any) -> Any:
    """Python's value for a typed one."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple([_plain(inner) for inner in value])
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.generic):
        return float(value) if element_type_of(value.dtype).is_floating else int(value)
    return str(value) if isinstance(value, Unread) else value


def _value(text: str | None, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
    if text is None or text == "unit":
        return np.True_
    if text in ("true", "false"):
        return np.bool_(text == "true")
    if text.startswith('"'):
        return read_string(text)
    if text.startswith("{"):
        return read_typed_config(text, depth)
    if text.startswith("[") and text.endswith("]"):
        return tuple(_value(part, depth + 1) for part in _split(text[1:-1]))
    if match := _ARRAY.fullmatch(text):
        element = _element_of(match.group(1))
        array = DenseArray([_number(part, element) for part in _split(match.group(2) or "")])
        array.element_type = element
        return array
    if match := _DENSE.fullmatch(text):
        return _dense(*match.groups())
    if match := _NUMBER.fullmatch(text):
        number, fraction, exponent, type_ = match.groups()
        if type_ is None:
            type_ = "f64" if fraction or exponent else "i64"
        return _number(number, _element_of(type_))
    return Unread(text)


def _element_of(type_: str) -> ElementType:
    """The element type that MLIR calls `type_`. ValueError if there is none."""
    found = ElementType.S64 if type_ == "index" else ELEMENT_TYPES.get(type_.removeprefix("s"))  # si8 is i8
    if found is None:
        raise ValueError(f"there is no element type {type_}")
    return found


def _number(text: str, element: ElementType) -> Any:
    """A number of this type; floats may be given by their bits."""
    text = text.strip()
    kind: Any = element.dtype.type
    if element is ElementType.PRED:
        return np.bool_(text in ("true", "1", "-1"))
    if element.is_integral:
        number = int(text, 0)
        lowest, highest = element.limits
        if not lowest <= number <= highest:
            raise ValueError(f"{text} is no {element.value}")
        return kind(number)
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(element.byte_width, "little"), element.dtype)[0]
    return kind(float(text))


def _dense(contents: str, sizes: str, type_: str) -> Any:
    dimensions = tuple(int(size) for size in sizes.split("x") if size)
    element = _element_of(type_)
    if contents.strip().startswith('"'):
        raise ValueError("dense attributes in hexadecimal form are not read")
    values = [_number(part, element) for part in re.split(r"[\[\],\s]+", contents) if part]
    array = np.array(values, element.dtype)
    array.flags.writeable = False
    return np.broadcast_to(array[0], dimensions) if array.size == 1 else array.reshape(dimensions)


def write_config(values: Mapping[str, Any]) -> str:
    """The MLIR dictionary with these values: `read_typed_config` gives them back. bool is i1, int i64, float f64;
    NumPy's numbers and arrays have their own types. TypeError for a value of another kind, OverflowError for an integer
    of more than 64 bits."""
    return "{" + ", ".join([f"{key_text(key)} = {_written(key, value)}" for key, value in values.items()]) + "}"


def _written(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return write_config(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join([_written(key, inner) for inner in value]) + "]"
    if isinstance(value, bool | int | float):
        kind = np.bool_ if isinstance(value, bool) else np.int64 if isinstance(value, int) else np.float64
        value = kind(value)
    try:
        element = element_type_of(value.dtype)
    except (AttributeError, TypeError):
        raise TypeError(f"the attribute {key!r} cannot be a {type(value).__name__}: {value!r}") from None
    if element.is_complex:
        raise TypeError(f"the attribute {key!r} cannot be complex")
    type_ = type_name(element)
    if isinstance(value, np.generic):
        text = number_text(value, element)
        return text if element is ElementType.PRED else f"{text} : {type_}"
    array = np.asarray(value)
    sizes = "".join([f"{size}x" for size in array.shape])
    return f"dense<{_nested(array, element)}> : tensor<{sizes}{type_}>"


def _nested(array: np.ndarray[Any, Any], element: ElementType) -> str:
    if array.ndim == 0:
        return number_text(array[()], element)
    return "[" + ", ".join([_nested(inner, element) for inner in array]) + "]" if array.size else ""


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket and no string."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\](){}<>,]', text, re.DOTALL):
        token = match.group()
        if token in ("[", "(", "{", "<"):
            depth += 1
        elif token in ("]", ")", "}", ">"):
            depth -= 1
        elif token == "," and not depth:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start:].strip()
    return [*parts, last] if last or parts else []

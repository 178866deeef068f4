"""The backend_config of a custom call as Python values.

A typed call (API_VERSION_TYPED_FFI) has an MLIR dictionary: `{uplo = 76 : ui8, scale = 0.5 : f32, name = "a"}`.
Integers become int, floats float, `true` and `false` bool, strings str, `array<i64: 1, 2>` and `[1, 2]` tuples,
dictionaries dict, `dense<[1, 2]> : tensor<2xi64>` a NumPy array, a key without a value True. Anything else (types,
symbols) stays text. Source: MLIR's language reference, "Attribute Value Syntax".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ..text.mlir_dictionary import read_dictionary_raw, read_string

_NUMBER = re.compile(r"(0x[0-9A-Fa-f]+|-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)\s*(?::\s*([a-z]+[0-9]+|index))?")
_ARRAY = re.compile(r"array<\s*([a-z]+[0-9]+)\s*(?::(.*))?>", re.DOTALL)
_DENSE = re.compile(r"dense<(.*)>\s*:\s*tensor<((?:[0-9]+x)*)([a-z]+[0-9]+)>", re.DOTALL)
_FLOAT_CODES = {"f16": "<e", "f32": "<f", "f64": "<d"}


MAX_DEPTH = 16


def read_config(text: str, depth: int = 0) -> dict[str, Any]:
    """The values of an MLIR dictionary by key. ValueError if it is malformed, or nested deeper than MAX_DEPTH."""
    return {key: _value(value, depth + 1) for key, value in read_dictionary_raw(text)}


def _value(text: str | None, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
    if text is None or text == "unit":
        return True
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"'):
        return read_string(text)
    if text.startswith("{"):
        return read_config(text, depth)
    if text.startswith("[") and text.endswith("]"):
        return tuple(_value(part, depth + 1) for part in _split(text[1:-1]))
    if match := _ARRAY.fullmatch(text):
        convert = _converter(match.group(1))
        return tuple(convert(part) for part in _split(match.group(2) or ""))
    if match := _DENSE.fullmatch(text):
        return _dense(*match.groups())
    if match := _NUMBER.fullmatch(text):
        number, fraction, exponent, type_ = match.groups()
        if type_ is None:
            type_ = "f64" if fraction or exponent else "i64"
        return _converter(type_)(number)
    return text


def _converter(type_: str) -> Callable[[str], Any]:
    """From the text of a number of MLIR's type to the number."""
    if type_ == "i1":
        return lambda text: text.strip() in ("true", "1", "-1")
    if type_.startswith(("i", "ui", "si")):
        return lambda text: int(text, 0)

    def to_float(text: str) -> float:
        text = text.strip()
        if not text.startswith("0x"):
            return float(text)
        code = _FLOAT_CODES.get(type_)
        if code is None:
            raise ValueError(f"no hexadecimal numbers of type {type_} are read")
        return float(struct.unpack(code, int(text, 16).to_bytes(struct.calcsize(code), "little"))[0])

    return to_float


def _dense(contents: str, sizes: str, type_: str) -> Any:
    dimensions = tuple(int(size) for size in sizes.split("x") if size)
    convert = _converter(type_)
    if contents.strip().startswith('"'):
        raise ValueError("dense attributes in hexadecimal form are not read")
    values = [convert(part) for part in re.split(r"[\[\],\s]+", contents) if part]
    array = np.array(values, dtype=bool if type_ == "i1" else None)
    array.flags.writeable = False
    return np.broadcast_to(array[0], dimensions) if array.size == 1 else array.reshape(dimensions)


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

"""MLIR's attribute dictionaries, `{length = 10 : i64, name = "a"}`: how XLA keeps the parameters of a composite call.

Both directions use pairs of strings: numbers, booleans and arrays of numbers as MLIR writes them, strings without
their quotes. Source: MLIR's language reference, "Attribute Value Syntax".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .scanner import pattern

_KEY = r"[A-Za-z_][A-Za-z0-9_.$]*"
_PLAIN = (
    r"-?[0-9][0-9a-zA-Z.+\-]*(?: : [a-z]\w*)?|true|false|dense<[-+0-9a-zA-F.,\[\] ]*> : tensor<\w+>"
)
"""Values without quotes. All others are written as strings."""


class Bare(str):
    """A value that stands without quotes though it looks like text: a type, a list, a dictionary."""

    __slots__ = ()


def write_dictionary(pairs: Iterable[tuple[str, str]]) -> str:
    """The dictionary of `pairs`; `read_dictionary` gives them back."""
    return "{" + ", ".join(f"{_key_text(key)} = {_value_text(value)}" for key, value in pairs) + "}"


def _key_text(key: str) -> str:
    """A key as it is written: in quotes, if it is no name."""
    return key if pattern(_KEY).fullmatch(key) else _quoted(key)


def is_bare(value: str) -> bool:
    """Whether a value stands without quotes: it looks like a number, or is marked."""
    return isinstance(value, Bare) or pattern(_PLAIN).fullmatch(value) is not None


def _value_text(value: str) -> str:
    return value if is_bare(value) else _quoted(value)


def _quoted(text: str) -> str:
    """The text in quotes; each byte that is not printable ASCII becomes two hexadecimal digits."""
    data = text.encode("utf-8", "backslashreplace")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data) + '"'


_DELIMITERS = r'"(?:[^"\\]|\\.)*+"|->|["\[({<\])}>,]'
_STRING = r'"((?:[^"\\]|\\.)*+)"'
_ENTRY = rf'({_KEY}|"(?:[^"\\]|\\.)*+")\s*(?:=\s*(.*))?'
_ESCAPE = r'\\(?:([0-9a-fA-F]{2})|([nt"\\]))'
_LETTERS = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_SHOWN = 40


def read_dictionary(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a dictionary; a key without a value has the value `Bare("unit")`. ValueError if it is malformed."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(f"expected a dictionary in braces, found {text[:_SHOWN]!r}")
    pairs: list[tuple[str, str]] = []
    start = position = 1
    depth = 0
    while match := pattern(_DELIMITERS, re.DOTALL).search(text, position):
        token, position = match.group(), match.end()
        if token == '"':
            break
        if token in "[({<":
            depth += 1
        elif depth and token in "])}>":
            depth -= 1
        elif not depth and token in ",}":
            entry = text[start : match.start()].strip()
            if entry or pairs or token == ",":
                pairs.append(_read_entry(entry))
            start = position
            if token == "}" and position == len(text):
                return tuple(pairs)
    raise ValueError(f"expected the end of the dictionary {text[:_SHOWN]!r}")


def _read_entry(entry: str) -> tuple[str, str]:
    match = pattern(_ENTRY, re.DOTALL).fullmatch(entry)
    if match is None:
        raise ValueError(f"expected `key = value` in the dictionary, found {entry[:_SHOWN]!r}")
    key, value = match.groups()
    text = _string(key)
    return key if text is None else text, Bare("unit") if value is None else _unquoted(value)


def _unquoted(text: str) -> str:
    """The contents of a string; any other text as it is, marked unless it looks like a number."""
    found = _string(text)
    if found is not None:
        return found
    return text if is_bare(text) else Bare(text)


def _string(text: str) -> str | None:
    """The contents of a string in quotes; None for other text."""
    match = pattern(_STRING, re.DOTALL).fullmatch(text)
    if match is None:
        return None
    data = match.group(1).encode("utf-8", "surrogateescape").decode("latin-1")
    data = pattern(_ESCAPE).sub(lambda m: chr(int(m.group(1), 16)) if m.group(1) else _LETTERS[m.group(2)], data)
    return data.encode("latin-1").decode("utf-8", "backslashreplace")

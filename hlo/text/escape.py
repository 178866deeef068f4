"""Strings and names in HLO text: escaping and its inverse.

Source: absl's CEscape and CUnescape, which XLA's printer and lexer use; XLA's GetSanitizedName.
"""

from __future__ import annotations

import re

from ..support.lazy import lazy_pattern

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_LONG = {"n": 10, "r": 13, "t": 9, '"': 34, "\\": 92, "'": 39, "?": 63, "a": 7, "b": 8, "f": 12, "v": 11}
_ESCAPE = lazy_pattern(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))?", re.DOTALL)
_NOT_IN_NAMES = lazy_pattern(r"[^A-Za-z0-9_.\-]")
NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_.\-]*")


def escape(text: str) -> str:
    """The body of a string literal that reads back as `text`. Printable characters stay readable, ASCII or not."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(_escaped_character(c) for c in text)


def _escaped_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in _to_bytes(character))


def visible(text: str) -> str:
    """Text for people, in a terminal or on a page: characters that a terminal would obey are escaped, and so are those
    that HTML may not have. Lines and tabs stay, and so does every printable character."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in "\n\t" else _escaped_character(c) for c in text])


def unescape(body: str) -> str:
    """The string that a literal with this body denotes; ValueError names an invalid escape.

    Bytes that are not UTF-8 become lone surrogates, as in Python's file names, and `escape` writes them back.
    """
    if "\\" not in body:
        return body
    pieces: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(body):
        pieces.append(_to_bytes(body[position : match.start()]))
        position = match.end()
        octal, hexadecimal, short, long, letter = match.groups()
        if octal is not None:
            pieces.append(bytes([_checked(int(octal, 8), 255, match)]))
        elif hexadecimal is not None:
            pieces.append(bytes([int(hexadecimal, 16)]))
        elif short is not None or long is not None:
            pieces.append(_to_bytes(chr(_checked(int(short or long, 16), 0x10FFFF, match))))
        else:
            code = _LONG.get(letter)
            if code is None:
                raise ValueError(f"{match.group()!r} is not an escape sequence")
            pieces.append(bytes([code]))
    pieces.append(_to_bytes(body[position:]))
    return b"".join(pieces).decode("utf-8", "surrogateescape")


def _checked(code: int, largest: int, match: re.Match[str]) -> int:
    if code > largest:
        raise ValueError(f"{match.group()!r} is not an escape sequence")
    return code


def _to_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that is not a byte
        return text.encode("utf-8", "surrogatepass")


def sanitized(name: str, fallback: str, reserved: re.Pattern[str]) -> str:
    """`name` as an identifier of HLO text: itself if it is one; otherwise with `_` instead of invalid characters, and
    with `_` after a `reserved` name."""
    if not NAME.fullmatch(name):
        name = _NOT_IN_NAMES.sub("_", name) or fallback
        if not NAME.fullmatch(name):
            name = "_" + name
    return name + "_" if reserved.fullmatch(name) else name

"""MLIR text as a list of tokens: everything that reads MLIR text walks over one.

One regular expression splits the whole text. A type such as `tensor<2x3xf32>` and a literal such as `dense<[1, 2]>` are
one token each, however long, so that common types are looked up and large constants go to NumPy in one piece. Source:
MLIR's language reference, "Lexical analysis".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import compress

from ..errors import HloParseError, UnsupportedError
from ..text.scanner import Scanner

_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
"""A string; one that is not closed is a token too, so that text with many quotes takes linear time."""
_TOKEN = re.compile(
    "|".join(
        (
            r"%[\w$.\-]+(?:\#\d+)?",
            r"->",
            r"-?(?:0x[0-9A-Fa-f]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+)",
            r"tensor<(?:[^<>\"(]|<(?:[^<>\"(]|<[^<>\"(]*>)*+>)*+>",
            r"dense<\s*+(?:\"0x[0-9A-Fa-f]*+\"\s*+|[^<>\"]*+)>",
            r"array<[^<>\"]*+>",
            rf"@(?:[A-Za-z_][\w$.\-]*|{_STRING})",
            r"[#!^]?[A-Za-z_][\w$.]*",
            _STRING,
            r"\#-\}|\{-\#|::",
            r"//[^\n]*",
            r"\S",
        )
    ),
    re.ASCII,
)
_STRING_OR_BRACKET = re.compile(rf"{_STRING}|->|//[^\n]*|[<>\[\](){{}}]")
_CLOSING = {"<": ">", "[": "]", "(": ")", "{": "}"}
_SHOWN = 40
"""Characters of an unexpected token that an error quotes."""
MAX_DEPTH = 64
"""How deep regions, and attributes and types, may be nested."""
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
"""The characters with which an identifier begins."""
END = ""
"""The token after the last one."""


class Tokens:
    """The tokens of `text`; `index` is the next one. A missing token raises HloParseError."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens: list[str] = _TOKEN.findall(text)
        if "//" in text:
            starts = [m.start() for m in _TOKEN.finditer(text)]
            kept = [not token.startswith("//") for token in self.tokens]
            self.tokens, self.starts = list(compress(self.tokens, kept)), list(compress(starts, kept))
        else:
            self.starts = _starts(text, self.tokens)
        self.tokens.append(END)
        self.starts.append(len(text.rstrip()))
        self.index = 0
        self._depth = 0

    def error(self, message: str, index: int | None = None) -> HloParseError:
        """An error at a token, by default the next one. The caller raises it."""
        return self.error_at(message, self.starts[self.index if index is None else index])

    def error_at(self, message: str, position: int) -> HloParseError:
        """An error at an offset in the text. The caller raises it."""
        return Scanner(self.text, self.file).error(message, position)

    def unsupported(self, what: str, position: int) -> UnsupportedError:
        """An error for a well-formed text; its message begins with the place. The caller raises it."""
        place = self.error_at("", position)
        return UnsupportedError(f"{place.file}:{place.line}:{place.column}: {what} is not supported")

    def expected(self, what: str, index: int | None = None) -> HloParseError:
        """An error at a token: `what` was expected, and the token was found. The caller raises it."""
        token = self.tokens[self.index if index is None else index]
        if token[:1] == '"' and not _is_closed(token):
            return self.error("expected '\"' at the end of this string", index)
        return self.error(f"expected {what}, found {repr(token[:_SHOWN]) if token else 'the end of the text'}", index)

    @property
    def next(self) -> str:
        """The next token, which stays."""
        return self.tokens[self.index]

    def take(self) -> str:
        """Move past the next token; it."""
        token = self.tokens[self.index]
        if token is not END:
            self.index += 1
        return token

    def accept(self, token: str) -> bool:
        """Move past `token` if it comes next."""
        if self.tokens[self.index] == token:
            self.index += 1
            return True
        return False

    def expect(self, token: str, why: str = "") -> None:
        """Move past `token`, which must come next; `why` ends the sentence "expected '{' ..."."""
        if self.tokens[self.index] != token:
            raise self.expected(f"{token!r} {why}" if why else repr(token))
        self.index += 1

    def word(self, what: str) -> str:
        """A bare identifier."""
        token = self.tokens[self.index]
        if token[:1] not in _LETTERS or token[-1] == ">":  # a type or a literal
            raise self.expected(what)
        self.index += 1
        return token

    def integer(self, what: str, limits: tuple[int, int] = (-(2**63), 2**63 - 1)) -> int:
        """A decimal integer, by default of 64 bits."""
        token = self.tokens[self.index]
        if not (token.isascii() and token.lstrip("-").isdecimal()):
            raise self.expected(what)
        value = int(token) if len(token) <= 20 else 2**64
        if not limits[0] <= value <= limits[1]:
            raise self.error(f"{what} {token[:_SHOWN]} does not fit in its type")
        self.index += 1
        return value

    def string(self, what: str) -> str:
        """A string in quotes, its escapes resolved."""
        token = self.tokens[self.index]
        if token[:1] != '"' or not _is_closed(token):
            raise self.expected(what)
        value = unescaped(token[1:-1])
        if value is None:
            raise self.error("this string has a backslash that starts no escape sequence")
        self.index += 1
        return value

    def symbol(self, what: str) -> str:
        """`@name` or `@"name"`; without the `@`."""
        token = self.tokens[self.index]
        if token[:1] != "@" or len(token) == 1 or not (token[1] != '"' or _is_closed(token[1:])):
            raise self.expected(what)
        value = unescaped(token[2:-1]) if token[1] == '"' else token[1:]
        if value is None:
            raise self.error("this name has a backslash that starts no escape sequence")
        self.index += 1
        return value

    def enter(self) -> None:
        """Begin something that can be in itself; an error if it is too deep. `leave` ends it."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"this is nested deeper than {MAX_DEPTH}")

    def leave(self) -> None:
        self._depth -= 1

    def balanced(self, start: int, first: str = "") -> str:
        """The text from an offset to the bracket that closes the first one after it; moves past it. Strings count as
        one piece, and `->` is no bracket. `first`: the bracket that must be the first."""
        open_brackets: list[str] = []
        for match in _STRING_OR_BRACKET.finditer(self.text, start):
            token = match.group()
            if token in _CLOSING:
                if first and not open_brackets and token != first:
                    break
                open_brackets.append(_CLOSING[token])
            elif token in (">", "]", ")", "}"):
                if not open_brackets or open_brackets.pop() != token:
                    break
                if not open_brackets:
                    self.jump(match.end())
                    return self.text[start : match.end()]
        raise self.error_at("expected a closing bracket for the one that follows", start)

    def jump(self, position: int) -> None:
        """Move to the first token at or after an offset in the text, which may be inside of a token."""
        index = bisect_left(self.starts, position, self.index)
        index = min(index, len(self.starts) - 1)
        before = index - 1
        if before >= 0 and self.starts[before] + len(self.tokens[before]) > position:
            self._split(before, position)
        self.index = index

    def _split(self, index: int, position: int) -> None:
        """Tokenise the end of a token again, from an offset in it: `tensor<...` ended earlier than it seemed."""
        end = self.starts[index] + len(self.tokens[index])
        found = [m for m in _TOKEN.finditer(self.text, position, end) if not m.group().startswith("//")]
        self.tokens[index + 1 : index + 1] = [m.group() for m in found]
        self.starts[index + 1 : index + 1] = [m.start() for m in found]
        self.tokens[index] = self.text[self.starts[index] : position]


def _starts(text: str, tokens: list[str]) -> list[int]:
    """The offsets of tokens with nothing but white space between them."""
    starts = []
    position = 0
    find = text.find
    for token in tokens:
        position = find(token, position)
        starts.append(position)
        position += len(token)
    return starts


def _is_closed(token: str) -> bool:
    """A string has a quote at its end that is no escape sequence."""
    body = token[1:-1]
    return len(token) > 1 and token[-1] == '"' and (len(body) - len(body.rstrip("\\"))) % 2 == 0


_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{2})|([nt\"\\])|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def unescaped(body: str) -> str | None:
    """The string that is written as `body`: bytes in UTF-8, those that are none as lone surrogates. None for an escape
    sequence that does not exist."""
    if "\\" not in body:
        return body
    data = body.encode("utf-8", "surrogateescape").decode("latin-1")
    if any(m[3] for m in _ESCAPE.finditer(data)):
        return None
    data = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPED[m[2]], data)
    return data.encode("latin-1").decode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    """The string in quotes; each byte that is not printable ASCII becomes two hexadecimal digits."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(_escaped(byte) for byte in data) + '"'


def _escaped(byte: int) -> str:
    if byte == 0x5C:
        return "\\\\"
    return chr(byte) if 32 <= byte < 127 and byte != 0x22 else f"\\{byte:02X}"


def is_identifier(text: str) -> bool:
    """A key or a symbol's name that needs no quotes."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$.]*", text) is not None

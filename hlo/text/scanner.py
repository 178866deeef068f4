"""Scanner: a cursor over HLO text. Everything that reads text (shapes, layouts, literals, modules) reads through one.

The tokens are XLA's (hlo_lexer.cc). Every method skips white space and comments first, and takes time linear in the
text that it consumes. Nothing of the IR belongs here, so that `layout.py` and `shape.py` can import it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ..errors import HloParseError
from ..support.lazy import lazy_pattern
from .escape import unescape

_SPACE = r"(?:\s+|/\*.*?\*/|//[^\n]*)*+"
_SKIP = lazy_pattern(_SPACE, re.DOTALL)
_WORD = lazy_pattern(_SPACE + r"([A-Za-z_][A-Za-z0-9_.\-]*)", re.DOTALL)
_NAME = lazy_pattern(_SPACE + r"%?([A-Za-z_][A-Za-z0-9_.\-]*)", re.DOTALL)
_INTEGER = lazy_pattern(_SPACE + r"(-?[0-9]+)", re.DOTALL)
_QUOTED = r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')"""
_STRING = lazy_pattern(f"{_SPACE}({_QUOTED})", re.DOTALL)
_STRING_OR_BRACE = lazy_pattern(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}]', re.DOTALL)
_STRING_OR_SPACE = lazy_pattern(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|(?:\s+|/\*.*?\*/|//[^\n]*)+', re.DOTALL)
_BARE_VALUE = lazy_pattern(r"[^\s,{}()\"=]+")
_FOUND = lazy_pattern(r"[A-Za-z0-9_.%\-]+|.", re.DOTALL)
_INT64 = range(-(2**63), 2**63)
_INT64_DIGITS = 20
_SHOWN = 40
"""Characters of an unexpected token that an error quotes."""


@cache
def pattern(regex: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression, compiled at its first use: programs that read no text need few."""
    return re.compile(regex, flags)


class Scanner:
    """Reads tokens of `text` from `position` on. A missing token raises HloParseError."""

    __slots__ = ("file", "position", "text")

    def __init__(self, text: str, file: str = "<hlo>") -> None:
        self.text: str = text
        self.file: str = file
        self.position = 0

    def error(self, message: str, position: int | None = None, label: str = "syntax") -> HloParseError:
        """An error at `position`, by default where the next token begins. The caller raises it.

        `label`: the violated rule, if the text follows the grammar; `message` ends with it.
        """
        if position is None:
            position = self.skip()
        line_start = self.text.rfind("\n", 0, position) + 1
        line_end = self.text.find("\n", position)
        source = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        line = self.text.count("\n", 0, position) + 1
        return HloParseError(message, line, position - line_start + 1, source, self.file, label)

    def expected(self, what: str) -> HloParseError:
        """An error at the next token: `what` was expected, and the next token was found. The caller raises it."""
        position = self.skip()
        found = _FOUND.match(self.text, position)
        token = repr(found.group()[:_SHOWN]) if found else "the end of the text"
        return self.error(f"expected {what}, found {token}", position)

    def skip(self) -> int:
        """Move to the next token; its position."""
        match = _SKIP.match(self.text, self.position)
        assert match is not None
        self.position = match.end()
        return self.position

    def at_end(self) -> bool:
        return self.skip() == len(self.text)

    def peek(self, token: str) -> bool:
        """True if `token` (punctuation) comes next."""
        return self.text.startswith(token, self.skip())

    def peek_digit(self) -> bool:
        """True if a number that is not negative comes next."""
        position = self.skip()
        return self.text[position : position + 1].isdecimal()

    def accept(self, token: str) -> bool:
        """Move past `token` (punctuation) if it comes next."""
        if self.text.startswith(token, self.position) or self.text.startswith(token, self.skip()):
            self.position += len(token)
            return True
        return False

    def expect(self, token: str, why: str = "") -> None:
        """Move past `token`, which must come next; `why` ends the sentence "expected '{' ..."."""
        if not self.accept(token):
            raise self.expected(f"{token!r} {why}" if why else repr(token))

    def each(self, close: str, what: str) -> Iterator[None]:
        """Pauses before each element of a list, which the caller reads: commas are between them, and `close` ends it.
        `what`: an element, for the message of an error."""
        is_first = True
        while not self.accept(close):
            if not is_first:
                self.expect(",", f"or {close!r} after {what}")
            is_first = False
            yield

    def peek_word(self) -> str:
        """The identifier that comes next, or "" if none does."""
        match = _WORD.match(self.text, self.position)
        return match.group(1) if match else ""

    def accept_word(self, word: str) -> bool:
        """Move past the identifier `word` if it comes next."""
        match = _WORD.match(self.text, self.position)
        if match is None or match.group(1) != word:
            return False
        self.position = match.end()
        return True

    def word(self, what: str) -> str:
        """An identifier: a keyword, an opcode, an attribute's key or value."""
        match = _WORD.match(self.text, self.position)
        if match is None:
            raise self.expected(what)
        self.position = match.end()
        return match.group(1)

    def name(self, what: str) -> str:
        """The name of an instruction or computation, with or without `%`; the result is without."""
        match = _NAME.match(self.text, self.position)
        if match is None:
            raise self.expected(what)
        self.position = match.end()
        return match.group(1)

    def integer(self, what: str) -> int:
        """A decimal integer of 64 bits."""
        match = _INTEGER.match(self.text, self.position)
        if match is None:
            raise self.expected(what)
        digits = match.group(1)
        if len(digits) > _INT64_DIGITS or int(digits) not in _INT64:
            raise self.error(f"{what} {digits[:_SHOWN]} does not fit in 64 bits")
        self.position = match.end()
        return int(digits)

    def string(self, what: str) -> str:
        """A string in double or single quotes, its escapes resolved."""
        match = _STRING.match(self.text, self.position)
        if match is None:
            if self.peek('"') or self.peek("'"):
                raise self.error("expected '\"' at the end of this string")
            raise self.expected(what)
        try:
            value = unescape(match.group(1)[1:-1])
        except ValueError as error:
            raise self.error(str(error)) from None
        self.position = match.end()
        return value

    def skip_value(self) -> None:
        """Move past any attribute value: in braces, in quotes, or a bare word or number."""
        if self.peek("{"):
            self.braced("a value")
        elif self.peek('"'):
            self.string("a value")
        else:
            match = _BARE_VALUE.match(self.text, self.position)
            if match is None:
                raise self.expected("a value")
            self.position = match.end()

    def value_text(self) -> str:
        """The text of any attribute value, on one line and without comments; strings in it stay as they are."""
        start = self.skip()
        self.skip_value()
        text = self.text[start : self.position]
        return _STRING_OR_SPACE.sub(lambda match: match.group(1) or " ", text)

    def braced(self, what: str) -> str:
        """The text from the `{` that comes next to its `}`, both included; braces in strings do not count."""
        start = self.skip()
        if not self.text.startswith("{", start):
            raise self.expected(what)
        depth = 0
        for match in _STRING_OR_BRACE.finditer(self.text, start):
            token = match.group()
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if depth == 0:
                    self.position = match.end()
                    return self.text[start : self.position]
        raise self.error("expected '}' for this '{'", start)

"""Reads symbolic shapes: ``"b, 2*n + 1, floordiv(n, 2), _, ..."``.

    shape  = [ "(" ] [ size { "," size } [ "," ] ] [ ")" ]        size = "_" | "..." | sum
    sum    = [ "+" | "-" ] term { ( "+" | "-" ) term }
    term   = factor [ "^" number ] { "*" factor [ "^" number ] }
    factor = [ "-" ] number | name | ( "floordiv" | "mod" | "max" | "min" ) "(" sum "," sum ")"

`_` stands for one size of another shape, "like", and `...` for all of its others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from .expressions import MAX, MIN, OPERATIONS, Dim, Scope, Size, max_of, min_of, operation, variable

_TOKEN = re.compile(r"\s*(\.\.\.|[^\W\d]\w*|\d+|\S)?")
_END = ""


def parse_sizes(
    text: str, like: Sequence[int | None] | None, scope: Scope, written: object = None
) -> tuple[Size, ...]:
    """The sizes that `text` lists. `like`: the shape from which placeholders are filled; None: there is none.
    `written`: what the user wrote, for messages; None: `text`.

    ValueError, with the position, if `text` is malformed or does not fit `like`.
    """
    return _Parser(text, like, scope, repr(text if written is None else written)).parse()


class _Parser:
    def __init__(self, text: str, like: Sequence[int | None] | None, scope: Scope, written: str) -> None:
        self._text, self._like, self._scope, self._written = text, like, scope, written
        self._sizes: list[Size] = []
        self._start = self._end = 0
        self._token = _END
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        assert match is not None, "it matches the empty text"
        self._token = match[1] or _END
        self._start, self._end = (match.start(1), match.end(1)) if match[1] else (len(self._text),) * 2

    def _fail(self, why: str) -> NoReturn:
        raise ValueError(
            f"syntax error in symbolic shape {self._written} in dimension {len(self._sizes)}: {why}. "
            f"Parsed '{self._text[: self._start]}', remaining '{self._text[self._start :]}'."
        )

    def _accept(self, token: str) -> bool:
        found = self._token == token
        if found:
            self._advance()
        return found

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            self._fail(f"expecting {token!r} but found {self._token or 'the end'!r}")

    def parse(self) -> tuple[Size, ...]:
        is_closed = self._accept("(")
        while self._token not in (_END, ")"):
            if self._token in ("_", "..."):
                if self._placeholder():
                    break
            else:
                self._append(self._sum())
            if self._token not in (_END, ")"):
                self._expect(",")
        if is_closed:
            self._expect(")")
        if self._token != _END:
            self._fail(f"expecting the end but found {self._token!r}")
        return tuple(self._sizes)

    def _placeholder(self) -> bool:
        """Append the sizes that it stands for; True if it must be the last one."""
        like, count, token = self._like, len(self._sizes), self._token
        if like is None:
            self._fail("spec contains ... but no 'like' shape was given")
        if len(like) < count + (token == "_"):
            self._fail(
                f"cannot resolve placeholder '{token}' because we parsed {count} already and 'like' shape has only "
                f"{len(like)} dimensions"
            )
        for size in like[count:] if token == "..." else like[count : count + 1]:
            if size is None:
                self._fail(f"unexpected placeholder for unknown dimension; like={like}")
            self._append(size)
        self._advance()
        return token == "..."

    def _append(self, size: Size) -> None:
        if self._like is not None and not isinstance(size, Dim):
            count = len(self._sizes)
            if count >= len(self._like):
                self._fail(f"the 'like' shape has only {len(self._like)} dimensions; like={self._like}")
            if self._like[count] != size:
                self._fail(f"different size {size} for known dimension; like={self._like}")
        self._sizes.append(size)

    def _sum(self) -> Size:
        total: Size = 0
        sign = self._sign() or 1
        while sign:
            total = total + sign * self._term()
            sign = self._sign()
        return total

    def _sign(self) -> int:
        """1 after a plus, -1 after a minus, otherwise 0."""
        return 1 if self._accept("+") else -1 if self._accept("-") else 0

    def _term(self) -> Size:
        product = self._power()
        while self._accept("*"):
            product = product * self._power()
        return product

    def _power(self) -> Size:
        factor = self._factor()
        return factor ** self._number() if self._accept("^") else factor

    def _number(self) -> int:
        if not self._token.isdecimal():
            self._fail(f"expecting integer, found {self._token or 'the end'!r}")
        number = int(self._token)
        self._advance()
        return number

    def _factor(self) -> Size:
        name = self._token
        if not name.isidentifier():
            return -self._number() if self._accept("-") else self._number()
        self._advance()
        if name not in OPERATIONS:
            return variable(name, self._scope)
        self._expect("(")
        x = self._sum()
        self._expect(",")
        y = self._sum()
        self._expect(")")
        if name in (MAX, MIN):
            return max_of(x, y) if name == MAX else min_of(x, y)
        return operation(name, x, y, self._scope)

"""Ordinary constants that note how they are used, as sizes do (`support/observed.py`).

    x / 3000            an observed literal: is it 1? (an ordinary constant never is)  Is it a power of two? (no)
    2 * (1 / 3000)      another one, which knows how it is computed from the first

So a program with another number of elements in its means, or another learning rate, is simplified as before. All that
needs the number itself notes that it is this number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..literal import Literal
from ..shape import Shape
from ..support.observed import Observations, Observed
from .forms import is_ordinary


class ObservedLiteral(Observed, Literal):
    """A literal of which each use is noted: a scalar float that is finite, and neither 0 nor 1 nor -1."""

    __slots__ = ("seen", "term", "value")

    value: Literal

    def __init__(self, value: Literal, term: int, seen: Observations) -> None:
        self.value, self.term, self.seen = value, term, seen

    @property
    def shape(self) -> Shape:
        return self.value.shape

    @property
    def array(self) -> np.ndarray[Any, Any]:  # type: ignore[override]
        """The number itself: what follows holds for this number alone."""
        return self.fixed().array

    def fixed(self) -> Literal:
        """The literal as one that is not observed: what follows holds for this number alone."""
        value = self.value
        self.seen.note(("is", value), lambda a, _: bool(a == value), self, self)
        return value

    def asked(self, question: Callable[[np.ndarray[Any, Any]], bool]) -> bool:
        """The answer to a question about the number."""
        return self.seen.note(question, lambda a, _: bool(question(a.array)), self, self)

    def changed(self, function: Callable[..., np.ndarray[Any, Any]], other: ObservedLiteral | None = None) -> Literal:
        """The result of a function of the number, or of two of them, which is a scalar."""

        def find(a: Literal, b: Literal) -> Literal:
            return Literal(function(a.array) if other is None else function(a.array, b.array))

        right = self if other is None else other
        term = self.seen.add(find, self.term, right.term)
        found = ObservedLiteral(find(self.value, right.value), term, self.seen)
        return found if found.asked(is_ordinary) else found.fixed()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Literal):
            return NotImplemented
        if isinstance(other, ObservedLiteral):
            assert other.seen is self.seen, "literals of two programs"
            return self.term == other.term or self.seen.note("==", _equal, self, other)
        if not is_ordinary(other.array):
            return False
        return self.seen.note(("is", other), lambda a, _: bool(a == other), self, self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ObservedLiteral({self.value.array!r})"


def computed(function: Callable[..., np.ndarray[Any, Any]], literals: Sequence[Literal]) -> Literal:
    """The result of a function of the values of literals, a scalar; it is observed where one or two of them are."""
    observed = [literal for literal in literals if type(literal) is ObservedLiteral]
    if not observed:
        return Literal(function(*[literal.array for literal in literals]))
    first, last = observed[0], observed[-1]

    def of(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return function(*[a if x is first else b if x is last else x.array for x in literals])

    return first.changed(of, last)


def _equal(a: Literal, b: Literal) -> bool:
    return a == b

"""The form of an attribute class in text, and builders that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import Attributes
from .scanner import Scanner

Reader = Callable[[Scanner], Any]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One attribute class in text: a reader for each key, the keys that must be there, and how to build it.

    `build` gets the values by key, computations resolved. It raises ValueError for a combination that makes no sense.
    """

    readers: Mapping[str, Reader]
    build: Callable[[Values], Attributes]
    required: tuple[str, ...] = ()


def keywords(kind: Callable[..., Attributes]) -> Callable[[Values], Attributes]:
    """For an attribute class whose fields are called as in the text."""
    return lambda values: kind(**values)


def with_dimension(kind: Callable[..., Attributes]) -> Callable[[Values], Attributes]:
    """For an attribute class whose field `dimension` is `dimensions={d}` in the text."""

    def build(values: Values) -> Attributes:
        given = dict(values)
        given["dimension"] = given.pop("dimensions")
        return kind(**given)

    return build

"""Codec: how one kind of attribute value is read from HLO text, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ..instruction import HloComputation, HloInstruction
from .scanner import Scanner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ComputationName:
    """A called computation, where an attribute names it."""

    name: str
    position: int


class Writing(NamedTuple):
    """What a value may be written by, beside itself."""

    instruction: HloInstruction
    name: Callable[[HloComputation], str]
    """The name of a called computation, without `%`."""


class Codec(NamedTuple, Generic[T]):
    """One kind of value, say numbers in braces. What `write` gives, `read` reads back."""

    read: Callable[[Scanner], Any]
    """read(scanner) -> the value; where it names computations, `ComputationName`s, which the resolver replaces."""
    write: Callable[[T, Writing], str]
    """write(value, what it is a value of) -> the text behind `key=`."""


def plain(read: Callable[[Scanner], T], write: Callable[[T], str]) -> Codec[T]:
    """A codec whose values are written by themselves."""
    return Codec(read, lambda value, writing: write(value))

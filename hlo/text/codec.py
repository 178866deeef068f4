"""Codec: how one kind of attribute value is read from HLO text, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from ..instruction import HloComputation, HloInstruction
from ..support.records import dataclass
from .scanner import Scanner

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ComputationName:
    """The name of a called computation in an attribute, with its position."""

    name: str
    position: int


class Writing(NamedTuple):
    """Further data that a writer may need to write a value."""

    instruction: HloInstruction
    name: Callable[[HloComputation], str]
    """The name of a called computation, without `%`."""


class Codec(NamedTuple, Generic[T]):
    """One kind of value, for example numbers in braces. `read` reads the text that `write` returns."""

    read: Callable[[Scanner], Any]
    """read(scanner) -> the value; with a `ComputationName`, which the resolver replaces, for each computation."""
    write: Callable[[T, Writing], str]
    """write(value, its context) -> the text after `key=`."""


def plain(read: Callable[[Scanner], T], write: Callable[[T], str]) -> Codec[T]:
    """A codec with a writer that needs only the value."""
    return Codec(read, lambda value, writing: write(value))

"""The keys of a pytree's paths: what leads from a node to one of its children, with JAX's names and text.

A path is a tuple of keys: ``(DictKey('w'), SequenceKey(0))`` leads to ``tree['w'][0]``, and `keystr` writes it so.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias, TypeVar

KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath: TypeAlias = tuple[KeyEntry, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """A child of a list or tuple, by its position."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True, slots=True)
class DictKey:
    """A value of a dictionary, by its key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """A field of a namedtuple, a dataclass or another object, by its name."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """A child of a registered container that says nothing about its keys, by its position."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ``['w'][0].bias``. `simple`: the bare keys, ``w0bias``; `separator` stands between keys."""
    return separator.join([_bare(key) if simple else str(key) for key in keys])


def _bare(key: Any) -> str:
    match key:
        case SequenceKey(found) | DictKey(found) | GetAttrKey(found) | FlattenedIndexKey(found):
            return str(found)
        case _:
            return str(key)

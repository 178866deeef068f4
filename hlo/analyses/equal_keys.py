"""The first of all things with equal keys, where a key may hold observed sizes and literals.

These have no hash. Their numbers stand for them, and what comes out is noted: which keys are equal, and that the others
are not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

from ..shape import Shape
from ..support.observed import Observed

T = TypeVar("T")


class Firsts(Generic[T]):
    """The first value for each key."""

    def __init__(self) -> None:
        self._found: dict[Hashable, T] = {}
        self._keys: dict[Hashable, tuple[Any, T]] | None = None
        """With observed keys: the keys by their numbers, and the values."""

    def of(self, key: Any, value: T) -> T:
        """The first value of the key, which may be this one."""
        if self._keys is None:
            try:
                return self._found.setdefault(key, value)
            except TypeError:
                self._keys = {_filled(key, _number_of): (key, found) for key, found in self._found.items()}
        own, first = self._keys.setdefault(_filled(key, _number_of), (key, value))
        if first is not value:
            _ = own == key  # which notes it
        return first

    def note_others(self) -> None:
        """Note that the keys differ. Those that do so whatever the numbers are need no note."""
        alike: dict[Hashable, list[list[Observed]]] = {}
        for key, _ in (self._keys or {}).values():
            observed: list[Observed] = []
            alike.setdefault(_filled(key, lambda each: observed.append(each)), []).append(observed)  # noqa: B023
        _note_different([rows for rows in alike.values() if len(rows) > 1])


def _note_different(groups: Sequence[Sequence[Sequence[Observed]]]) -> None:
    """Note that no two rows of a group are equal."""
    terms: dict[int, Observed] = {each.term: each for rows in groups for row in rows for each in row}
    if not terms:
        return
    number = {term: k for k, term in enumerate(terms)}
    places = [[tuple([number[each.term] for each in row]) for row in rows] for rows in groups]

    def are_different(numbers: Sequence[Any]) -> bool:
        return all(len({tuple([numbers[k] for k in row]) for row in rows}) == len(rows) for rows in places)

    several = list(terms.values())
    several[0].seen.note_of_several(are_different, several)


def _number_of(observed: Any) -> Hashable:
    number: Hashable = observed.value
    return number


def _filled(value: Any, change: Callable[[Any], Hashable]) -> Hashable:
    """A key with something else in the place of what is observed."""
    kind = type(value)
    if kind is tuple:
        return tuple([_filled(part, change) for part in value])
    if kind is Shape:
        sizes = tuple([change(d) if isinstance(d, Observed) else d for d in value.dimensions])
        inner = None if value.tuple_shapes is None else tuple([_filled(s, change) for s in value.tuple_shapes])
        return Shape, value.element_type, sizes, value.layout, inner, value.is_token
    if isinstance(value, Observed):
        return change(value)
    try:
        hash(value)
    except TypeError:
        return kind, *[_filled(getattr(value, f.name), change) for f in fields(value)]
    found: Hashable = value
    return found

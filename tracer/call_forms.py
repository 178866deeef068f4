"""The form of a call for machine code: which containers its arguments have, and where in them the leaves are.

`call_form` takes the arguments apart breadth-first, as the machine code does (`hlo/runners.py`), and finds the order
of the leaves, which is optree's: dictionaries by sorted keys. For ``f({"w": x, "b": y}, s=2)``:

    objects      0 (...,)   1 {"s": 2}   2 {"w": x, "b": y}   3 2   4 x   5 y
    containers   0 tuple, 1 part    1 dict, key "s"    2 dict, keys "w", "b"
    places       5 4 3

A static argument is no leaf, and not taken apart: a call is like this one if it has the very same object there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..hlo.runners import SiteContainer
from .arguments import StaticArguments
from .trees import tree
from .trees.nodes import CONTAINERS, container

_MOST_OBJECTS = 2048
"""The machine code keeps their addresses on its stack, which is small in some threads."""


class CallForm(NamedTuple):
    """The containers of a call, the place of each leaf among its objects, and the static arguments by their places."""

    containers: list[SiteContainer]
    places: list[int]
    constants: dict[int, object]


def call_form(args: tuple[Any, ...], kwargs: Mapping[str, Any], statics: StaticArguments) -> CallForm | None:
    """The form of a call with these arguments, of which some are static. None if they have a container that is no
    tuple, list, dictionary or named tuple, too many objects, or a static argument that may change."""
    objects: list[Any] = [args, kwargs]
    found: list[SiteContainer] = []
    parts_of: dict[int, list[int]] = {}
    names = [*kwargs]
    constants: dict[int, object] = {2 + position: value for position, _, value in statics.positional}
    constants |= {2 + len(args) + names.index(name): value for name, _, value in statics.keyword}
    if not all(map(_is_constant, constants.values())):
        return None
    for place, value in enumerate(objects):  # which grows
        kind = type(value)
        if place in constants or container(kind) is None:
            continue
        is_known = kind in (tuple, list, dict, type(None)) or (issubclass(kind, tuple) and kind not in CONTAINERS)
        if not is_known:
            return None
        keys: tuple[Any, ...] = tuple(value) if kind is dict else ()
        parts = _parts(value)
        if len(objects) + len(parts) > _MOST_OBJECTS:
            return None
        numbers = range(len(objects), len(objects) + len(parts))
        place_of = dict(zip(keys, numbers))
        try:
            parts_of[place] = [place_of[key] for key in sorted(keys)] if keys else [*numbers]
        except TypeError:  # keys that have no order: optree has one of its own
            return None
        found.append(SiteContainer(place, kind, len(parts), keys))
        objects += parts
    places: list[int] = []
    waiting = [1, 0]
    while waiting:
        place = waiting.pop()
        if place in parts_of:
            waiting += reversed(parts_of[place])
        elif place not in constants:
            places.append(place)
    dynamic = [value for place, value in enumerate(args, 2) if place not in constants]
    named = enumerate(kwargs.items(), 2 + len(args))
    keywords = {name: value for place, (name, value) in named if place not in constants}
    leaves = tree.leaves((dynamic, keywords))
    if len(places) != len(leaves) or any(objects[p] is not leaf for p, leaf in zip(places, leaves, strict=True)):
        return None
    return CallForm(found, places, constants)


_CONSTANTS = int, bool, float, complex, str, bytes, type(None), type(Ellipsis)


def _is_constant(value: object) -> bool:
    """Whether an object is equal to itself at all times. One with an equality of its own may change in between, so that
    it stands for another program."""
    kind = type(value)
    if isinstance(value, tuple) and kind is tuple:
        return all(map(_is_constant, value))
    return kind in _CONSTANTS or (kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__)


def _parts(value: Any) -> list[Any]:
    """Of a container, as CPython has them: a named tuple may have methods of its own for its length and its parts."""
    if isinstance(value, tuple):
        return [*tuple.__iter__(value)]
    if type(value) is dict:
        return [*value.values()]
    return [] if value is None else [*value]

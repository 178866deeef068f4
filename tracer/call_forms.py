"""The form of a call for machine code: which containers its arguments have, and where in them the leaves are.

`call_form` takes the arguments apart breadth-first, as the machine code does (`hlo/runners.py`), and finds the order
of the leaves, which is optree's: dictionaries by sorted keys. For ``f({"w": x, "b": y}, s=2)``:

    objects      0 (...,)   1 {"s": 2}   2 {"w": x, "b": y}   3 2   4 x   5 y
    containers   0 tuple, 1 part    1 dict, key "s"    2 dict, keys "w", "b"
    places       5 4 3
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..hlo.runners import SiteContainer
from .trees import tree
from .trees.nodes import CONTAINERS, container

_MOST_OBJECTS = 2048
"""The machine code keeps their addresses on its stack, which is small in some threads."""


class CallForm(NamedTuple):
    """The containers of a call, and the place of each leaf among its objects."""

    containers: list[SiteContainer]
    places: list[int]


def call_form(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallForm | None:
    """The form of a call with these arguments. None if they have a container that is no tuple, list, dictionary or
    named tuple, or too many objects."""
    objects: list[Any] = [args, kwargs]
    found: list[SiteContainer] = []
    parts_of: dict[int, list[int]] = {}
    for place, value in enumerate(objects):  # which grows
        kind = type(value)
        if container(kind) is None:
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
        else:
            places.append(place)
    leaves = tree.leaves((args, kwargs))
    if len(places) != len(leaves) or any(objects[p] is not leaf for p, leaf in zip(places, leaves, strict=True)):
        return None
    return CallForm(found, places)


def _parts(value: Any) -> list[Any]:
    """Of a container, as CPython has them: a named tuple may have methods of its own for its length and its parts."""
    if isinstance(value, tuple):
        return [*tuple.__iter__(value)]
    if type(value) is dict:
        return [*value.values()]
    return [] if value is None else [*value]

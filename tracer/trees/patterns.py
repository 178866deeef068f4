"""Flattening arguments again: a function for one structure of dictionaries, lists, tuples, named tuples, dataclasses
and None, made after it has come a few times.

optree handles any tree: it looks up each node's class, sorts the keys of dictionaries and builds the structure, 5 us
for ten arrays in six dictionaries. A program that is called in a loop gets the same structure each time. A pattern is a
function that takes such a tree apart and finds on the way whether it is one: about 1 us. The text for
``({"w": 0, "b": 0},)``; its keys are data beside the text:

    def leaves(root):
        if len(root) != 1: return None
        n0, = root
        if type(n0) is not dict or len(n0) != 2: return None
        try:
            n1, n2 = n0[k0], n0[k1]
        except KeyError:
            return None
        return [n1, n2]

A pattern does not check that the value at the place of a leaf is one: the caller must find out whether it is one.
"""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from ..caches import on_clear
from .library import optree
from .nodes import DATA_FIELDS, is_container_class

_AFTER = 8
"""A structure gets a function when it has come so often."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
_MOST_NODES, _MOST_DEPTH, _MOST_PATTERNS = 2000, 100, 1000


class Pattern:
    """A structure, known by identity. `leaves(root)` are the leaves, in optree's order; None for another structure."""

    __slots__ = ("leaves",)

    def __init__(self, leaves: Callable[[Any], list[Any] | None]) -> None:
        self.leaves = leaves


_found: dict[Any, Pattern | int] = {}
"""By structure; a number says how often it has come."""
on_clear(_found.clear)


def pattern_of(treedef: Any, root: Any, leaves: list[Any]) -> Pattern | None:
    """The pattern of a structure, which belongs to `root`, a list or a tuple with these `leaves`; None if it has none,
    or not yet.

    Propagates errors from hashing and comparing the structure.
    """
    found = _found.get(treedef, 0)
    if type(found) is not int:
        return found  # type: ignore[return-value]
    if found < 0 or len(_found) >= _MOST_PATTERNS:
        return None
    if found < _AFTER:
        _found[treedef] = found + 1
        return None
    text = _Text()
    function = text.function() if text.sequence("root", root) else None
    # Other containers, which optree knows, are taken for leaves here: such a structure has no pattern.
    same = function is not None and [*map(id, function(root) or ())] == [*map(id, leaves)]
    _found[treedef] = Pattern(function) if function is not None and same else -1
    return None


class _Text:
    """The text of a function, built from an example."""

    def __init__(self) -> None:
        self.nodes = 0
        self._lines: list[str] = []
        self._leaves: list[str] = []
        self._constants: dict[str, Any] = {}

    def function(self) -> Callable[[Any], list[Any] | None]:
        body = [*self._lines, f"return [{', '.join(self._leaves)}]"]
        scope: dict[str, Any] = dict(self._constants)
        exec("\n    ".join(["def leaves(root):", *body]), scope)
        made: Callable[[Any], list[Any] | None] = scope["leaves"]
        return made

    def sequence(self, name: str, value: Any, depth: int = 0) -> bool:
        """A list or a tuple; of the outermost one it does not matter which. False if there is something else in it."""
        kind = "" if depth == 0 else f"type({name}) is not {type(value).__name__} or "
        return self._unpacked(name, value, f"{kind}len({name}) != {len(value)}", depth)

    def _unpacked(self, name: str, value: Any, other: str, depth: int) -> bool:
        self._lines.append(f"if {other}: return None")
        names = [self._new() for _ in value]
        if names:
            self._lines.append(f"{', '.join(names)}, = {name}")
        return all(self._node(n, v, depth) for n, v in zip(names, value, strict=True))

    def _dictionary(self, name: str, value: dict[Any, Any], depth: int) -> bool:
        self._lines.append(f"if type({name}) is not dict or len({name}) != {len(value)}: return None")
        try:
            keys = sorted(value)
        except TypeError:  # optree has an order of its own for these
            return False
        if not keys:
            return True
        names = [self._new() for _ in keys]
        parts = [f"{name}[{self._constant(key)}]" for key in keys]
        self._lines += ["try:", f"    {', '.join(names)}, = {', '.join(parts)},", "except KeyError:", "    return None"]
        return all(self._node(n, value[k], depth) for n, k in zip(names, keys, strict=True))

    def _node(self, name: str, value: Any, depth: int) -> bool:
        kind = type(value)
        if self.nodes > _MOST_NODES or depth > _MOST_DEPTH:
            return False
        if kind is dict:
            return self._dictionary(name, value, depth + 1)
        if kind is list or kind is tuple:
            return self.sequence(name, value, depth + 1)
        if kind in DATA_FIELDS:
            return self._dataclass(name, value, depth + 1)
        if optree.is_namedtuple_class(kind) and not is_container_class(kind):
            return self._unpacked(name, value, f"type({name}) is not {self._constant(kind)}", depth + 1)
        if value is None:
            self._lines.append(f"if {name} is not None: return None")
            return True
        self._leaves.append(name)
        return True

    def _dataclass(self, name: str, value: Any, depth: int) -> bool:
        """Of fields that belong to the structure only plain values are compared."""
        data, meta = DATA_FIELDS[type(value)]
        if not all(field.isidentifier() and not iskeyword(field) for field in (*data, *meta)):
            return False
        self._lines.append(f"if type({name}) is not {self._constant(type(value))}: return None")
        fields = {field: self._new() for field in (*data, *meta)}
        if not fields:
            return True
        parts = [f"{name}.{field}" for field in fields]
        names = ", ".join(fields.values())
        self._lines += ["try:", f"    {names}, = {', '.join(parts)},", "except AttributeError:", "    return None"]
        for field in meta:
            known, new = getattr(value, field), fields[field]
            if type(known) not in _PLAIN:
                return False
            kind = self._constant(type(known))
            self._lines.append(f"if type({new}) is not {kind} or {new} != {self._constant(known)}: return None")
        return all(self._node(fields[field], getattr(value, field), depth) for field in data)

    def _constant(self, value: Any) -> str:
        """The name of a value in the function's scope."""
        name = f"k{len(self._constants)}"
        self._constants[name] = value
        return name

    def _new(self) -> str:
        self.nodes += 1
        return f"n{self.nodes}"

"""Flattening arguments again: a function for one structure of dictionaries, lists, tuples, named tuples, dataclasses
and None, made after it has come a few times.

optree handles any tree: it looks up each node's class, sorts the keys of dictionaries and builds the structure, 5 us
for ten arrays in six dictionaries. A program that is called in a loop gets the same structure each time. A pattern is a
function that takes such a tree apart and finds on the way whether it is one: about 1 us. The text for
``({"w": 0, "b": 0},)``; classes and keys are data beside the text:

    def leaves(root):
        if len(root) != 1: return None
        n1, = root
        if type(n1) is not k0 or len(n1) != 2: return None
        try:
            n2, n3, = n1[k1], n1[k2],
        except KeyError:
            return None
        return [n2, n3]

A pattern does not check that the value at the place of a leaf is one: the caller must find out whether it is one.
"""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from ..caches import on_clear
from .nodes import CONTAINERS, container
from .treedef import PyTreeDef

_AFTER = 8
"""A structure gets a function when it has come so often."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
_MOST_NODES, _MOST_DEPTH, _MOST_PATTERNS = 2000, 100, 1000


class Pattern:
    """A structure that has come often, known by identity: a key that is quick to look up. `leaves(root)` are the
    leaves, in optree's order; None for another structure, and for all roots where the structure has no function."""

    __slots__ = ("leaves",)

    def __init__(self, leaves: Callable[[Any], list[Any] | None]) -> None:
        self.leaves = leaves


_found: dict[PyTreeDef, Pattern | int] = {}
"""By structure; a number says how often it has come."""
on_clear(_found.clear)


def pattern_of(treedef: PyTreeDef, root: Any) -> Pattern | None:
    """The pattern of a structure, which belongs to `root`, a list or a tuple; None if it has none yet.

    ValueError if structures cannot be compared.
    """
    found = _found.get(treedef, 0)
    if type(found) is not int:
        return found  # type: ignore[return-value]
    if len(_found) >= _MOST_PATTERNS:
        return None
    if found < _AFTER:
        _found[treedef] = found + 1
        return None
    text = _Text()
    _found[treedef] = Pattern(text.function() if text.node("root", root) else _no_leaves)
    return None


def _no_leaves(root: Any) -> None:
    """The leaves where no function finds them."""


class _Text:
    """The text of a function, built from an example."""

    def __init__(self) -> None:
        self._nodes = 0
        self._lines: list[str] = []
        self._leaves: list[str] = []
        self._constants: dict[str, Any] = {}

    def function(self) -> Callable[[Any], list[Any] | None]:
        body = [*self._lines, f"return [{', '.join(self._leaves)}]"]
        scope: dict[str, Any] = dict(self._constants)
        exec("\n    ".join(["def leaves(root):", *body]), scope)
        made: Callable[[Any], list[Any] | None] = scope["leaves"]
        return made

    def node(self, name: str, value: Any, depth: int = 0) -> bool:
        """Add the lines for a value; of the outermost list or tuple it does not matter which it is. False if there is
        something in it that no lines can be made for."""
        kind = type(value)
        known = container(kind)
        if self._nodes > _MOST_NODES or depth > _MOST_DEPTH:
            return False
        if known is None:
            self._leaves.append(name)
            return True
        others = [f"type({name}) is not {self._constant(kind)}"] if depth else []
        children, source, error, count = [], name, "", 0
        if kind is list or kind is tuple:
            children = [*value]
            others.append(f"len({name}) != {len(value)}")
        elif kind is dict:
            try:
                keys = sorted(value)
            except TypeError:  # optree has an order of its own for these
                return False
            children = [value[key] for key in keys]
            source, error = "".join([f"{name}[{self._constant(key)}], " for key in keys]), "KeyError"
            others.append(f"len({name}) != {len(value)}")
        elif known.fields is not None:
            count = len(known.fields[1])
            fields = [*known.fields[0], *known.fields[1]]
            if not all(field.isidentifier() and not iskeyword(field) for field in fields):
                return False
            children = [getattr(value, field) for field in fields]
            source, error = "".join([f"{name}.{field}, " for field in fields]), "AttributeError"
        elif value is not None:
            if kind in CONTAINERS:
                return False
            children = [*value]  # of a named tuple
        self._lines.append(f"if {' or '.join(others)}: return None")
        names = [self._new() for _ in children]
        if names:
            line = f"{', '.join(names)}, = {source}"
            self._lines += ["try:", f"    {line}", f"except {error}:", "    return None"] if error else [line]
        pairs = list(zip(names, children, strict=True))
        data, meta = pairs[: len(pairs) - count], pairs[len(pairs) - count :]
        for new, part in meta:  # fields that belong to the structure: only plain values are compared
            if type(part) not in _PLAIN:
                return False
            plain = self._constant(type(part))
            self._lines.append(f"if type({new}) is not {plain} or {new} != {self._constant(part)}: return None")
        return all(self.node(new, part, depth + 1) for new, part in data)

    def _constant(self, value: Any) -> str:
        """The name of a value in the function's scope."""
        name = f"k{len(self._constants)}"
        self._constants[name] = value
        return name

    def _new(self) -> str:
        self._nodes += 1
        return f"n{self._nodes}"

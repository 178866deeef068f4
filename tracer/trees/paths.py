"""Where things are in a pytree: the path of each leaf, and where two trees differ in structure.

Nothing here is on the way of a call that succeeds without asking for paths, so it walks trees in Python, each structure
once.
"""

from __future__ import annotations

import collections
import difflib
import itertools
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ..caches import BoundedCache, register_cache
from .keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr
from .library import optree
from .nodes import jax_data, one_level, short_repr, structure_says_keys

KeyPath: TypeAlias = tuple[Any, ...]


# ---- paths


def leaf_paths(tree: Any, is_leaf: Callable[[KeyPath, Any], bool] | None = None) -> tuple[list[KeyPath], list[bool]]:
    """The path of each leaf, and the value of `is_leaf` (if any) for each node and leaf, parents first."""
    paths: list[KeyPath] = []
    answers: list[bool] = []

    def visit(path: KeyPath, node: Any) -> None:
        if is_leaf is not None:
            answers.append(bool(is_leaf(path, node)))
        parts = None if is_leaf is not None and answers[-1] else one_level(node)
        if parts is None:
            paths.append(path)
            return
        keys, children, _ = parts
        for key, child in zip(keys, children, strict=True):
            visit((*path, key), child)

    visit((), tree)
    return paths, answers


_paths: BoundedCache[list[KeyPath]] = BoundedCache(256)
"""Paths of structures that say all keys."""
register_cache(_paths)


def paths_of_tree(tree: Any, treedef: Any) -> list[KeyPath]:
    """The path of each leaf of `tree`, which has the structure `treedef`. Trees are flattened again and again: the walk
    is made once for a structure, where that says the keys."""
    try:
        found = _paths.get(treedef)
    except (TypeError, ValueError):  # auxiliary data without a hash, or without ==
        return leaf_paths(tree)[0]
    if found is None:
        says_keys = True

        def look(path: KeyPath, node: Any) -> bool:
            nonlocal says_keys
            says_keys = says_keys and structure_says_keys(node)
            return False

        found, _ = leaf_paths(tree, look)
        if says_keys:
            _paths[treedef] = found
    return found


def paths_of_structure(treedef: Any) -> list[KeyPath]:
    """The path of each leaf of a structure.

    A registered class says the keys of an object only, so one is made with numbers for leaves. If its class does not
    take these, positions are its keys.
    """
    try:
        paths, _ = leaf_paths(treedef.unflatten(range(treedef.num_leaves)))
        if len(paths) == treedef.num_leaves:
            return paths
    except Exception:
        pass
    return [tuple([_key_of_entry(entry) for entry in accessor]) for accessor in treedef.accessors()]


def _key_of_entry(entry: Any) -> Any:
    match type(entry).__name__:
        case "MappingEntry":
            return DictKey(entry.entry)
        case "SequenceEntry":
            return SequenceKey(entry.entry)
        case "NamedTupleEntry" | "StructSequenceEntry":
            return GetAttrKey(entry.field)
    return FlattenedIndexKey(entry.entry)


# ---- differences


def first_difference(
    treedef: Any, tree: Any, name: str, exact: bool = False, place: Callable[[KeyPath], str] | None = None
) -> str | None:
    """Where `tree` does not have the structure `treedef`, and how; None if it has.

    name: the name of the tree with the structure.
    exact: there must be leaves where `treedef` has some; else there may be any trees.
    place: how a path is written; by default `name`, then the keys.
    """
    return next(differences(treedef, tree, name, exact, place), None)


def differences(
    treedef: Any, tree: Any, name: str, exact: bool = False, place: Callable[[KeyPath], str] | None = None
) -> Iterator[str]:
    """As `first_difference`: all, but none inside of another."""
    return _differences((), treedef, tree, name, exact, place or (lambda path: f"{name}{keystr(path)}"))


def _differences(
    path: KeyPath, treedef: Any, tree: Any, name: str, exact: bool, write: Callable[[KeyPath], str]
) -> Iterator[str]:
    place = write(path)
    if treedef.is_leaf():
        if exact and one_level(tree) is not None:
            yield (
                f"different types at key path\n    {place}\nwhere {name} has a leaf, but the other tree has a subtree "
                f"of type\n    {type(tree)}"
            )
        return
    kind = treedef.type or type(None)
    if type(tree) is not kind:
        yield (
            f"different types at key path\n    {place}\nwhere {name} has a subtree of type\n    {kind}\nbut the other "
            f"tree has a subtree of different type\n    {type(tree)}\n{_expected(treedef, tree)}{_none_advice(kind)}"
        )
        return
    parts = one_level(tree)
    assert parts is not None
    wanted = data_of_node(treedef)
    count = treedef.num_children
    if kind in (tuple, list):
        if count != len(parts.children):
            yield (
                f"different lengths of {kind.__name__} at key path\n    {place}\nwhere {name} has a subtree of type "
                f"{kind.__name__} of length {count}, but the other tree has one of length {len(parts.children)}\n"
                f"{kind.__name__.capitalize()} arity mismatch: {len(parts.children)} != {count}; {kind.__name__}: "
                f"{short_repr(tree)}."
            )
            return
    elif count != len(parts.children) or wanted != parts.data:
        differ = "numbers of pytree children" if count != len(parts.children) else "pytree metadata"
        if issubclass(kind, dict) and (keys := _key_difference(_keys(kind, wanted), _keys(kind, parts.data))):
            found = f"the keys\n    {keys}"
        elif count != len(parts.children):
            found = f"{count} children, but the other tree has one of the same type with {len(parts.children)}"
        else:
            found = f"metadata\n    {_metadata_difference(wanted, parts.data)}"
        yield (
            f"different {differ} at key path\n    {place}\nwhere {name} has a subtree of type\n    {kind}\nwith {found}"
        )
        return
    for key, inner, child in zip(parts.keys, treedef.children(), parts.children, strict=True):
        yield from _differences((*path, key), inner, child, name, exact, write)


def _expected(treedef: Any, tree: Any) -> str:
    """The expected and the actual structure, in JAX's words."""
    kind = treedef.type or type(None)
    if kind in (tuple, list, dict, type(None)):
        return f"Expected {'None' if kind is type(None) else kind.__name__}, got {short_repr(tree)}."
    if not optree.is_namedtuple_class(kind):
        return f"Custom node type mismatch: expected type: {kind}, value: {short_repr(tree)}."
    if isinstance(tree, tuple) and optree.is_namedtuple_class(type(tree)):
        return f"Named tuple type mismatch: expected type: {kind}, tuple: {short_repr(tree)}."
    return f"Expected named tuple, got {short_repr(tree)}."


def _none_advice(kind: type) -> str:
    if kind is not type(None):
        return ""
    return "\n  None is a container without leaves: is_leaf=lambda x: x is None makes it a leaf."


def _keys(kind: type, data: Any) -> list[Any]:
    return list(data[1] if kind is collections.defaultdict else data)


def _key_difference(wanted: list[Any], found: list[Any]) -> str:
    missing, extra = ([k for k in a if k not in b] for a, b in ((wanted, found), (found, wanted)))
    if not missing and not extra:
        return ""
    lacks, has = (", ".join(map(repr, keys)) for keys in (missing, extra))
    differ = " and ".join(([f"lacks {lacks}"] if lacks else []) + ([f"also has {has}"] if has else []))
    mismatch = f"Dict key mismatch; expected keys: {wanted}; got: {found}."
    return f"{wanted}\nbut the other tree has\n    {found}\nso it {differ}\n{mismatch}"


def _metadata_difference(wanted: Any, found: Any) -> str:
    lines = difflib.ndiff(str(wanted).splitlines(), str(found).splitlines())
    return (
        f"{wanted}\nbut the other tree has one of the same type with metadata\n    {found}\nso the difference is\n"
        + textwrap.indent("\n".join([line.rstrip() for line in lines]), "    ")
    )


def data_of_node(treedef: Any) -> Any:
    """The auxiliary data of a structure's root: for a dictionary, a tuple of its keys."""
    kind, data, _ = treedef.one_level().walk([None] * treedef.num_children, lambda *node: node)
    return tuple(data) if kind is dict else jax_data(kind, data)


# ---- text


def describe(treedef: Any) -> str:
    """A structure for messages: ``(*, [*, *])``, with a star for each leaf."""
    text: str = treedef.walk(itertools.repeat("*", treedef.num_leaves), _node_text)
    return text


def _node_text(kind: type, data: Any, children: tuple[str, ...]) -> str:
    inside = ", ".join(children)
    if kind is tuple:
        return f"({inside},)" if len(children) == 1 else f"({inside})"
    if kind is list:
        return f"[{inside}]"
    if kind is type(None):
        return "None"
    if kind is dict:
        return f"{{{', '.join([f'{key!r}: {child}' for key, child in zip(data, children, strict=True)])}}}"
    if data is kind:
        return f"CustomNode(namedtuple[{kind.__name__}], [{inside}])"
    return f"CustomNode({kind.__name__}[{jax_data(kind, data)}], [{inside}])"

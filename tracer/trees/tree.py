"""`hloom.tree`: pytrees, by optree, with JAX's names and meaning. None is an empty node; leaves of dictionaries are
in the order of sorted keys.

Containers: list, tuple, namedtuple, dict, OrderedDict, defaultdict, deque, None, and classes that users register.

The tracer works with optree's structures, which are fast, as `treedef`; users get a PyTreeDef (`treedef.py`).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .keys import keystr
from .library import optree
from .nodes import (
    NAMESPACE,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_static,
)
from .paths import (
    data_of_node,
    describe,
    differences,
    first_difference,
    leaf_paths,
    paths_of_structure,
    paths_of_tree,
)

__all__ = [
    "PyTreeDef",
    "all",
    "all_leaves",
    "broadcast",
    "broadcast_prefix",
    "data_of_node",
    "describe",
    "first_difference",
    "flatten",
    "flatten_up_to",
    "flatten_with_path",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "ordered",
    "paths_of_structure",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_static",
    "shown",
    "structure",
    "treedef_is_leaf",
    "unflatten",
]

PyTreeDef: TypeAlias = Any
"""A tree's structure: hashable, compared by value."""
_NOTHING: Any = object()
IsLeaf: TypeAlias = "Callable[[Any], bool] | None"


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """(leaves, structure)."""
    leaves, treedef = optree.tree_flatten(tree, is_leaf=is_leaf, none_is_leaf=False, namespace=NAMESPACE)
    return leaves, treedef


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; ValueError if their number is wrong."""
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order. None is an empty container; dictionaries are sorted by their keys.

    >>> hloom.tree.leaves({"b": [1, 2], "a": 3, "c": None})
    [3, 1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure alone."""
    return flatten(tree, is_leaf)[1]


# ---- the order of dictionaries


def ordered(treedef: PyTreeDef) -> PyTreeDef:
    """The same structure, equal to it, but with sorted keys in the dictionaries that it makes.

    A structure makes them in the order of the dictionary that was flattened. But programs are shared by all equal
    structures, and a program's result must not depend on the order of the first caller.
    """
    return treedef if treedef.num_nodes == treedef.num_leaves else treedef.transform(_with_sorted_keys)


def _with_sorted_keys(node: PyTreeDef) -> PyTreeDef:
    kind = node.type
    if kind is not dict and kind is not defaultdict:
        return node
    found = node.unflatten(range(node.num_leaves))
    keys = node.entries()
    if list(found) == keys:
        return node
    new: Any = defaultdict(found.default_factory) if kind is defaultdict else {}
    new.update(dict.fromkeys(keys, 0))
    return structure(new)


# ---- several trees


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of f(leaf, leaf of each of rest); ValueError unless `tree` is a prefix of each tree of `rest`.

    is_leaf: a function that says of a container whether it counts as a leaf. None in a tree stays.

    >>> hloom.tree.map(lambda x: 10 * x, {"w": [1, 2], "b": 3})
    {'w': [10, 20], 'b': 30}
    >>> hloom.tree.map(lambda p, g: p - g, {"w": 5.0}, {"w": 0.5})
    {'w': 4.5}
    """
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in first])
    others = [flatten_up_to(treedef, r, "tree_map tree") for r in rest]
    return treedef.unflatten([f(*xs) for xs in zip(first, *others, strict=True)])


def flatten_up_to(treedef: PyTreeDef, tree: Any, name: str = "tree") -> list[Any]:
    """The subtrees of `tree` at the places of the leaves of `treedef`.

    ValueError if `tree` has another structure above them: it says where in `name`, the tree with this structure.
    """
    try:
        subtrees: list[Any] = treedef.flatten_up_to(tree)
        return subtrees
    except ValueError:
        problem = first_difference(treedef, tree, name)
        if problem is None:
            raise
    raise ValueError(f"{_STRUCTURE_ERROR}{problem}")


_STRUCTURE_ERROR = "pytree structure error: "


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None, name: str = "prefix_tree"
) -> list[Any]:
    """For each leaf of `full_tree`, the leaf of `prefix_tree` that is there or above it.

    is_leaf: about nodes of `prefix_tree`; ``lambda x: x is None`` makes None a value.
    name: of `prefix_tree`, for the message of the ValueError if it is no prefix.
    """
    values, treedef = flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError:
        found = [f"{_STRUCTURE_ERROR}{each}" for each in differences(treedef, full_tree, name)]
        if not found:
            raise
        listed = "\n".join(found)
        raise ValueError(f"Mismatch details ({len(found)} found):\n{listed}") from None
    return [v for v, subtree in zip(values, subtrees, strict=True) for _ in leaves(subtree)]


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree with the structure of `full_tree`; each leaf of `prefix_tree` is repeated for all leaves at and below
    its place.

    ValueError, which says where, unless `prefix_tree` is a prefix of `full_tree`.

    >>> hloom.tree.broadcast([1, 2], [{"a": 0, "b": 0}, 0])
    [{'a': 1, 'b': 1}, 2]
    """
    return unflatten(structure(full_tree), broadcast_prefix(prefix_tree, full_tree, is_leaf))


# ---- all leaves of one tree


def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NOTHING, is_leaf: IsLeaf = None
) -> Any:
    """functools.reduce over the leaves, from `initializer` if it is given.

    >>> import operator
    >>> import hloom
    >>> hloom.tree.reduce(operator.add, {"w": [1, 2], "b": 3})
    6
    """
    start = () if initializer is _NOTHING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _NOTHING, is_leaf: IsLeaf = None
) -> Any:
    """The leaves combined pair by pair, halves first: a chain of operations as short as can be.

    TypeError for a tree without leaves if no `identity` is given.

    >>> hloom.tree.reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    values = leaves(tree, is_leaf)
    if not values:
        if identity is _NOTHING:
            raise TypeError("reduce_associative: the tree has no leaves, so an identity must be given")
        return identity

    def combined(begin: int, end: int) -> Any:
        if end - begin == 1:
            return values[begin]
        middle = (begin + end) // 2
        return operation(combined(begin, middle), combined(middle, end))

    return combined(0, len(values))


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """True if all leaves are true.

    >>> hloom.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return bool(optree.tree_all(tree, is_leaf=is_leaf, none_is_leaf=False, namespace=NAMESPACE))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """True if no element is a container (unless `is_leaf` says that it is a leaf).

    >>> import hloom
    >>> from hloom.tree_util import all_leaves
    >>> all_leaves([1, 2]), all_leaves([1, [2]])
    (True, False)
    """
    items = list(iterable)
    found = leaves(items, None if is_leaf is None else lambda x: x is not items and is_leaf(x))
    return len(found) == len(items) and not [None for a, b in zip(items, found, strict=True) if a is not b]


# ---- with paths


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """([(path, leaf), ...], structure); a path is a tuple of keys (DictKey, SequenceKey, GetAttrKey, ...).

    is_leaf_takes_path: `is_leaf` is called with the path and the node.
    """
    if is_leaf is None:
        found, treedef = flatten(tree)
        return list(zip(paths_of_tree(tree, treedef), found, strict=True)), treedef
    answer = is_leaf
    paths, answers = leaf_paths(tree, answer if is_leaf_takes_path else lambda _, node: answer(node))
    given = iter(answers)
    found, treedef = flatten(tree, lambda _: next(given))
    return list(zip(paths, found, strict=True)), treedef


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[Any, Any]]:
    """[(path, leaf), ...], as `flatten_with_path`.

    >>> [(hloom.tree_util.keystr(path), leaf) for path, leaf in hloom.tree.leaves_with_path({"w": [1, 2]})]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """The tree of f(path, leaf, leaf of each of rest); as `map`.

    >>> hloom.tree.map_with_path(lambda path, x: f"{hloom.tree_util.keystr(path)}={x}", {"w": [1, 2]})
    {'w': ["['w'][0]=1", "['w'][1]=2"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [flatten_up_to(treedef, r, "tree_map_with_path tree") for r in rest]
    return unflatten(treedef, [f(*pair, *xs) for pair, *xs in zip(pairs, *others, strict=True)])


# ---- structures


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """True for the structure of a single leaf."""
    return bool(treedef.is_leaf())


def shown(treedef: PyTreeDef) -> str:
    """A structure as users see it: ``PyTreeDef((*, [*, *]))``."""
    return f"PyTreeDef({describe(treedef)})"

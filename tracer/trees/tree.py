"""`hloom.tree`: pytrees, by optree, with JAX's names and meaning. None is an empty node; leaves of dictionaries are
in the order of sorted keys.

Containers: list, tuple, namedtuple, dict, OrderedDict, defaultdict, deque, None, and classes that users register.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ...hlo.support.tracebacks import boundaries
from .nodes import NAMESPACE, flatten_one_level, is_tree_node, one_level, optree
from .nodes import keystr as keystr
from .nodes import register_dataclass as register_dataclass
from .nodes import register_pytree_node as register_pytree_node
from .nodes import register_pytree_node_class as register_pytree_node_class
from .nodes import register_pytree_with_keys as register_pytree_with_keys
from .nodes import register_static as register_static
from .treedef import PyTreeDef as PyTreeDef
from .treedef import describe as describe
from .treedef import differences as differences
from .treedef import flatten_up_to as flatten_up_to
from .treedef import leaf_paths, paths_of_tree, spec_of
from .treedef import ordered as ordered
from .treedef import paths_of_structure as paths_of_structure
from .treedef import treedef_is_strict_leaf as treedef_is_strict_leaf
from .treedef import unflatten as unflatten

_NOTHING: Any = object()
IsLeaf: TypeAlias = "Callable[[Any], bool] | None"


def flatten_of(library: Any) -> Callable[[Any, IsLeaf, bool, str], tuple[list[Any], Any]]:
    """optree's function that flattens (tree, is_leaf, whether None is a leaf, namespace).

    optree.tree_flatten calls a function in C++, which no document describes. Without the frame of the former a call
    takes a tenth less time. A version of optree in which that function is another one gets the documented one.
    """
    try:
        found: Any = library._C.flatten
        found(None, None, False, NAMESPACE)
    except (AttributeError, TypeError):
        return lambda tree, is_leaf, none_is_leaf, namespace: library.tree_flatten(
            tree, is_leaf, none_is_leaf=none_is_leaf, namespace=namespace
        )
    return found  # type: ignore[no-any-return]


_flatten = flatten_of(optree)


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """(leaves, structure). The leaves of a pytree are the objects in its lists, tuples, dictionaries and other
    registered containers.

    >>> leaves, structure = hloom.tree.flatten({"w": [1, 2], "b": 3})
    >>> leaves, structure
    ([3, 1, 2], PyTreeDef({'b': *, 'w': [*, *]}))
    """
    leaves, spec = _flatten(tree, is_leaf, False, NAMESPACE)
    return leaves, PyTreeDef(spec)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order. None is an empty container; dictionaries are sorted by their keys.

    >>> hloom.tree.leaves({"b": [1, 2], "a": 3, "c": None})
    [3, 1, 2]
    """
    found: list[Any] = _flatten(tree, is_leaf, False, NAMESPACE)[0]
    return found


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure alone, without the leaves.

    >>> hloom.tree.structure({"w": [1, 2], "b": 3})
    PyTreeDef({'b': *, 'w': [*, *]})
    """
    return PyTreeDef(_flatten(tree, is_leaf, False, NAMESPACE)[1])


# ---- several trees


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of f(leaf, leaf of each of rest); ValueError unless `tree` is a prefix of each tree of `rest`.

    is_leaf: a function that says of a container whether it counts as a leaf. None in a tree stays.

    >>> hloom.tree.map(lambda x: 10 * x, {"w": [1, 2], "b": 3})
    {'w': [10, 20], 'b': 30}
    >>> hloom.tree.map(lambda p, g: p - g, {"w": 5.0}, {"w": 0.5})
    {'w': 4.5}
    """
    first, spec = _flatten(tree, is_leaf, False, NAMESPACE)
    if not rest:
        return spec.unflatten([f(x) for x in first])
    treedef = PyTreeDef(spec)
    others = [flatten_up_to(treedef, r, "tree_map tree") for r in rest]
    return spec.unflatten([f(*xs) for xs in zip(first, *others, strict=True)])


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None, name: str = "prefix_tree"
) -> list[Any]:
    """For each leaf of `full_tree`, the leaf of `prefix_tree` that is there or above it.

    is_leaf: about nodes of `prefix_tree`; ``lambda x: x is None`` makes None a value.
    name: of `prefix_tree`, for the message of the ValueError if it is no prefix.
    """
    values, treedef = flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef._spec.flatten_up_to(full_tree)
    except ValueError:
        found = [f"pytree structure error: {each}" for each in differences(treedef, full_tree, name)]
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


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out. `inner_treedef`: by default the structure of the first inner tree.

    TypeError unless the tree has a leaf for each pair of leaves of both structures.

    >>> hloom.tree.transpose(hloom.tree.structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    spec_of(outer_treedef)
    leaves, found = flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(flatten_up_to(outer_treedef, pytree_to_transpose, "outer_treedef")[0])
    count = spec_of(inner_treedef).num_leaves
    if len(leaves) != outer_treedef.num_leaves * count:
        raise TypeError(
            f"Mismatch: the tree to transpose has the structure\n{found}\nwhich is not\n"
            f"{outer_treedef.compose(inner_treedef)}"
        )
    return unflatten(inner_treedef, [unflatten(outer_treedef, leaves[k::count]) for k in range(count)])


# ---- all leaves of one tree


def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NOTHING, is_leaf: IsLeaf = None
) -> Any:
    """functools.reduce over the leaves, from `initializer` if it is given.

    >>> hloom.tree.reduce(max, {"w": [1, 2], "b": 3})
    3
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
    return builtins.all(leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """True if no element is a container (unless `is_leaf` says that it is a leaf).

    >>> hloom.tree_util.all_leaves([1, 2]), hloom.tree_util.all_leaves([1, [2]])
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

    >>> found, structure = hloom.tree.flatten_with_path({"w": [1, 2]})
    >>> found
    [((DictKey(key='w'), SequenceKey(idx=0)), 1), ((DictKey(key='w'), SequenceKey(idx=1)), 2)]
    """
    if is_leaf is None:
        found, treedef = flatten(tree)
        return list(zip(paths_of_tree(tree, treedef), found, strict=True)), treedef
    answers: list[bool] = []

    def asked(path: Any, node: Any) -> bool:
        answers.append(bool(is_leaf(path, node) if is_leaf_takes_path else is_leaf(node)))
        return answers[-1]

    paths = leaf_paths(tree, asked)
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


# ---- the registry


@boundaries
class PyTreeRegistry:
    """The known containers, as methods: jax.tree_util.default_registry."""

    def flatten(self, tree: Any, leaf_predicate: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
        """(leaves, structure)."""
        return flatten(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Any] | None:
        """(children, auxiliary data) of a container; None for a leaf."""
        return flatten_one_level(tree) if is_tree_node(type(tree)) else None

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[[Any, Any], bool] | None = None
    ) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
        """([(path, leaf), ...], structure); `leaf_predicate` is called with path and node."""
        return flatten_with_path(tree, leaf_predicate, is_leaf_takes_path=True)

    flatten_one_level_with_keys = staticmethod(one_level)
    is_node = staticmethod(is_tree_node)
    register_dataclass_node = staticmethod(register_dataclass)

    def register_node(
        self,
        nodetype: type[Any],
        to_iterable: Callable[[Any], tuple[Iterable[Any], Any]],
        from_iterable: Callable[[Any, Any], Any],
        to_iterable_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
    ) -> None:
        """`register_pytree_node`."""
        register_pytree_node(nodetype, to_iterable, from_iterable, to_iterable_with_keys)


default_registry: PyTreeRegistry = PyTreeRegistry()


# ---- functions with some of their arguments


class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree: the arguments are children, the function is part of the structure.

    So the function must be hashable, and functions that compare equal share compiled programs.

    >>> scale = hloom.tree_util.Partial(jnp.multiply, jnp.array([1, 2]))
    >>> hloom.jit(lambda f, x: f(x))(scale, 10)
    Array([10, 20], dtype=int32)
    >>> hloom.tree.leaves(scale)
    [Array([1, 2], dtype=int32)]
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        # functools.partial would take another's arguments into its own. They stay where they are: the arguments in
        # `func` are structure, the new ones are leaves.
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **keywords)


class _Whole:
    """A functools.partial that functools.partial does not look into. Compared by its contents."""

    def __init__(self, held: functools.partial[Any]) -> None:
        self.held = held
        self.func, self.args, self.keywords = held.func, held.args, held.keywords

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.held(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return bool(self.held == (other.held if isinstance(other, _Whole) else other))

    def __hash__(self) -> int:
        return hash(self.held)

    def __repr__(self) -> str:
        return repr(self.held)


register_pytree_node(
    Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, parts: Partial(func, *parts[0], **parts[1])
)

"""`hloom.tree`: pytrees, by optree, with JAX's names and meaning. None is an empty node, dictionaries are sorted.

Containers: list, tuple, namedtuple, dict, OrderedDict, defaultdict, deque, None, and what users register.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias, TypeVar

import optree

_NAMESPACE = "hloom"
PyTreeDef: TypeAlias = Any
"""A tree's structure: hashable, compared by value."""
C = TypeVar("C", bound=type)
_NOTHING: Any = object()
IsLeaf: TypeAlias = "Callable[[Any], bool] | None"


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """(leaves, structure)."""
    leaves, treedef = optree.tree_flatten(tree, is_leaf=is_leaf, none_is_leaf=False, namespace=_NAMESPACE)
    return leaves, treedef


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; ValueError if their number is wrong."""
    return optree.tree_unflatten(treedef, leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure alone."""
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of f(leaf, leaf of each of rest); ValueError unless `tree` is a prefix of each tree of `rest`."""
    first, treedef = flatten(tree, is_leaf)
    others = [treedef.flatten_up_to(r) for r in rest]
    return unflatten(treedef, [f(*xs) for xs in zip(first, *others, strict=True)])


def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NOTHING, is_leaf: IsLeaf = None
) -> Any:
    """functools.reduce over the leaves, from `initializer` if it is given."""
    start = () if initializer is _NOTHING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """True if all leaves are true."""
    return bool(optree.tree_all(tree, is_leaf=is_leaf, none_is_leaf=False, namespace=_NAMESPACE))


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out. `inner_treedef`: by default that of the first inner tree."""
    if inner_treedef is None:
        inner_treedef = structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    rows = [inner_treedef.flatten_up_to(t) for t in outer_treedef.flatten_up_to(pytree_to_transpose)]
    return unflatten(inner_treedef, [unflatten(outer_treedef, column) for column in zip(*rows, strict=True)])


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """([(path, leaf), ...], structure); a path is a tuple of keys and indices."""
    paths, found, treedef = optree.tree_flatten_with_path(
        tree, is_leaf=is_leaf, none_is_leaf=False, namespace=_NAMESPACE
    )
    return list(zip(paths, found, strict=True)), treedef


def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make a class a container: (children, auxiliary data) = flatten(node); node = unflatten(auxiliary, children).

    flatten_with_keys_func: node -> ([(key, child), ...], auxiliary data); the keys are those in paths.
    """

    def flattened(node: Any) -> tuple[Any, ...]:
        if flatten_with_keys_func is None:
            return tuple(flatten_func(node))
        pairs, auxiliary = flatten_with_keys_func(node)
        keys, children = zip(*pairs) if (pairs := list(pairs)) else ((), ())
        return children, auxiliary, keys

    optree.register_pytree_node(
        nodetype,
        flattened,
        lambda auxiliary, children: unflatten_func(auxiliary, tuple(children)),
        namespace=_NAMESPACE,
    )


def register_pytree_node_class(cls: C) -> C:
    """Class decorator for a class with `tree_flatten(self)` and a class method `tree_unflatten(aux, children)`."""
    node: Any = cls
    register_pytree_node(node, lambda x: x.tree_flatten(), node.tree_unflatten)
    return cls


def register_dataclass(
    nodetype: C,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Iterable[str] = (),
) -> C:
    """Make a dataclass a container: `data_fields` are children, `meta_fields` part of the structure (hashable).

    `drop_fields` are in neither, and get their defaults when a node is made again.

    Raises:
      TypeError: only one of both lists is given, or none and the class is no dataclass.
      ValueError: a field is in both lists or in none, or the class has no such field.
    """
    data, meta = dataclass_fields(nodetype, data_fields, meta_fields, tuple(drop_fields))
    register_pytree_node(
        nodetype,
        lambda node: ([getattr(node, f) for f in data], tuple([getattr(node, f) for f in meta])),
        lambda auxiliary, children: nodetype(**dict(zip(data, children)), **dict(zip(meta, auxiliary))),
    )
    return nodetype


def dataclass_fields(
    nodetype: type[Any],
    data_fields: Iterable[str] | None,
    meta_fields: Iterable[str] | None,
    drop_fields: Iterable[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Data and meta fields; by default, meta fields are those with `static=True` in their `metadata`.

    ValueError unless each field that `__init__` takes, except `drop_fields`, is in one of the two.
    """
    name = getattr(nodetype, "__name__", repr(nodetype))
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(f"register_dataclass({name}): give both data_fields and meta_fields, or none of them")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    declared = {f.name: f for f in dataclasses.fields(nodetype) if f.init} if is_dataclass else {}
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError(f"register_dataclass: {name} is no dataclass: give data_fields and meta_fields")
        static = tuple([n for n, f in declared.items() if f.metadata.get("static", False)])
        return tuple([n for n in declared if n not in static]), static
    data, meta = tuple(data_fields), tuple(meta_fields)
    both = sorted({*data} & {*meta})
    missing = sorted(declared.keys() - {*data, *meta, *drop_fields}) if is_dataclass else []
    unknown = sorted({*data, *meta} - (declared.keys() - {*drop_fields})) if is_dataclass else []
    for what, names in (("in data_fields and in meta_fields", both), ("in neither", missing)):
        if names:
            fields = ", ".join(names)
            raise ValueError(f"register_dataclass({name}): the fields {fields} are {what}: name each field once")
    if unknown:
        raise ValueError(
            f"register_dataclass({name}): {', '.join(unknown)} are no fields that its __init__ takes; these are "
            f"{', '.join(declared)}"
        )
    return data, meta


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """For each leaf of `tree`, the leaf of `prefix` at or above its place; ValueError if `prefix` is no prefix."""
    found: list[Any] = []

    def spread(leaf: Any, below: Any) -> None:
        found.extend([leaf] * structure(below).num_leaves)

    first, treedef = flatten(prefix, is_leaf)
    for leaf, below in zip(first, treedef.flatten_up_to(tree), strict=True):
        spread(leaf, below)
    return found


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """True for the structure of a single leaf."""
    return bool(treedef.is_leaf())


def describe(treedef: PyTreeDef) -> str:
    """A structure for messages: ``(*, [*, *])``, with a star for each leaf."""
    text = str(treedef).removeprefix("PyTreeSpec(").removesuffix(")")
    return text.removesuffix(f", namespace={_NAMESPACE!r}")


def shown(treedef: PyTreeDef) -> str:
    """A structure as users see it: ``PyTreeDef((*, [*, *]))``."""
    return f"PyTreeDef({describe(treedef)})"

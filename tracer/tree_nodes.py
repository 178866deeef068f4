"""Which classes are containers of pytrees, how users register theirs, and what a node consists of.

optree flattens; it gets each registered class once. What it has no place for is kept here: the functions that give keys
with the children, which only paths need.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import optree

from .tree_keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

NAMESPACE = "hloom"
C = TypeVar("C", bound=type)


class _Registered(NamedTuple):
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None
    keys_of_class: bool = False
    """All objects of the class have the same keys."""


_registered: dict[type, _Registered] = {}
_SEQUENCES = (tuple, list, collections.deque)
_DICTIONARIES = (dict, collections.OrderedDict, collections.defaultdict)
_BUILTIN = frozenset((*_SEQUENCES, *_DICTIONARIES, type(None)))


# ---- registration


def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make a class a container: (children, auxiliary data) = flatten(node); node = unflatten(auxiliary, children).

    flatten_with_keys_func: node -> ([(key, child), ...], auxiliary data); the keys are those in paths.

    Raises:
      TypeError: `nodetype` is no class.
      ValueError: the class is a container already.
    """
    if nodetype in _BUILTIN or nodetype in _registered:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.")

    def flatten(node: Any) -> tuple[Iterable[Any], Any]:
        pair: Any = flatten_func(node)
        if type(pair) is not tuple or len(pair) != 2 or (type(pair[0]) is not tuple and not _is_iterable(pair[0])):
            raise ValueError(
                f"the flatten function of the pytree node {nodetype.__name__} should return a tuple (children, "
                f"aux_data), whose children are iterable; it returned {_short(pair)}"
            )
        return cast(tuple[Iterable[Any], Any], pair)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a namedtuple may have a registration of its own, as in JAX
        optree.register_pytree_node(nodetype, flatten, unflatten_func, namespace=NAMESPACE)
    _registered[nodetype] = _Registered(flatten, flatten_with_keys_func)


def _is_iterable(children: object) -> bool:
    return hasattr(children, "__iter__") or hasattr(children, "__getitem__")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def register_pytree_node_class(cls: C) -> C:
    """Class decorator for a class with `tree_flatten(self)` and a class method `tree_unflatten(aux, children)`."""
    node: Any = cls
    register_pytree_node(node, operator.methodcaller("tree_flatten"), node.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type[Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a class a container that knows its keys: ([(key, child), ...], auxiliary data) = flatten_with_keys(node).

    flatten_func: the same without keys, where that is faster; used wherever no path is asked for.
    """

    def without_keys(node: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, auxiliary = flatten_with_keys(node)
        return tuple([child for _, child in pairs]), auxiliary

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: C) -> C:
    """Class decorator for a class with `tree_flatten_with_keys(self)` and a class method `tree_unflatten(aux,
    children)`; `tree_flatten(self)`, if there is one, is used where no path is asked for."""
    node: Any = cls
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(node, operator.methodcaller("tree_flatten_with_keys"), node.tree_unflatten, flatten)
    return cls


def register_static(cls: C) -> C:
    """Class decorator: objects of the class have no leaves, and are part of the structure. They must be hashable."""
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node))
    return cls


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Make a dataclass a container: `data_fields` are children, `meta_fields` part of the structure (hashable).

    `drop_fields` are in neither, and get their defaults when a node is made again.

    Raises:
      TypeError: only one of both lists is given, or none and the class is no dataclass.
      ValueError: a field is in both lists or in none, or the class has no such field.
    """
    data, meta = dataclass_fields(nodetype, data_fields, meta_fields, tuple(drop_fields))
    keys = [GetAttrKey(name) for name in data]

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(node, f) for f in data]), tuple([getattr(node, f) for f in meta])

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        children, auxiliary = flatten(node)
        return list(zip(keys, children, strict=True)), auxiliary

    def unflatten(auxiliary: tuple[Any, ...], children: tuple[Any, ...]) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, auxiliary)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    _registered[nodetype] = _registered[nodetype]._replace(keys_of_class=True)
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
        lost = [f.name for f in dataclasses.fields(nodetype) if not f.init and f.name not in drop_fields]
        if lost:
            raise ValueError(
                f"register_dataclass({name}): __init__ does not take the fields {', '.join(lost)}, so they do not "
                "become leaves and get their defaults when a node is made again. If that is meant, name them in "
                "drop_fields"
            )
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


def incomparable(error: Exception) -> ValueError:
    """What to raise where `error` came from a comparison of structures."""
    return ValueError(
        "Exception raised while checking equality of metadata fields of pytree (or of static arguments): "
        f"{type(error).__name__}: {error}\n  Such fields must be hashable, and == must give one bool: arrays must be "
        "data fields instead."
    )


def static_field(**kwargs: Any) -> Any:
    """A field of a dataclass that `register_dataclass` takes for metadata: as `dataclasses.field`, with its options."""
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


# ---- one node


class OneLevel(NamedTuple):
    """What a node consists of: the keys of its children, the children, and what else belongs to the structure."""

    keys: tuple[Any, ...]
    children: tuple[Any, ...]
    data: Any


def is_tree_node(typ: type) -> bool:
    """Whether objects of this class are containers, not leaves."""
    if typ in _BUILTIN or typ in _registered:
        return True
    return bool(optree.is_namedtuple_class(typ) or optree.is_structseq_class(typ))


def one_level(node: Any) -> OneLevel | None:
    """The parts of a container; None for a leaf."""
    kind = type(node)
    if kind is tuple or kind is list:
        return OneLevel(_positions(len(node)), tuple(node), None)
    if kind is dict or kind is collections.defaultdict:
        keys = in_order(node)
        data = keys if kind is dict else (node.default_factory, keys)
        return OneLevel(tuple([DictKey(k) for k in keys]), tuple([node[k] for k in keys]), data)
    known = _registered.get(kind)
    if known is not None:
        return _one_level_of_registered(node, known)
    if node is None:
        return OneLevel((), (), None)
    if kind is collections.OrderedDict:
        keys = tuple(node)
        return OneLevel(tuple([DictKey(k) for k in keys]), tuple(node.values()), keys)
    if kind is collections.deque:
        return OneLevel(_positions(len(node)), tuple(node), node.maxlen)
    if issubclass(kind, tuple):
        if optree.is_namedtuple_class(kind):
            return OneLevel(tuple([GetAttrKey(f) for f in optree.namedtuple_fields(kind)]), tuple(node), kind)
        if optree.is_structseq_class(kind):
            return OneLevel(tuple([GetAttrKey(f) for f in optree.structseq_fields(kind)]), tuple(node), kind)
    return None


@functools.lru_cache(maxsize=64)
def _positions(count: int) -> tuple[SequenceKey, ...]:
    return tuple([SequenceKey(i) for i in range(count)])


def structure_says_keys(node: Any) -> bool:
    """Whether equal structures mean equal keys: not for what a user's function says about one object, nor where keys
    are equal and not the same, as 1 and True are."""
    kind = type(node)
    known = _registered.get(kind)
    if known is not None:
        return known.keys_of_class
    return kind not in _DICTIONARIES or not any(type(key) is not str for key in node)


def _one_level_of_registered(node: Any, known: _Registered) -> OneLevel:
    if known.flatten_with_keys is None:
        children, data = known.flatten(node)
        children = tuple(children)
        return OneLevel(tuple([FlattenedIndexKey(i) for i in range(len(children))]), children, data)
    pairs, data = known.flatten_with_keys(node)
    pairs = tuple(pairs)
    return OneLevel(tuple([key for key, _ in pairs]), tuple([child for _, child in pairs]), data)


def in_order(dictionary: dict[Any, Any]) -> tuple[Any, ...]:
    """The keys in the order of the leaves: sorted, as far as they can be."""
    try:
        return tuple(sorted(dictionary))
    except TypeError:
        return tuple(optree.tree_structure(dict.fromkeys(dictionary, 0)).entries())


def jax_data(kind: type, data: Any) -> Any:
    """What optree keeps for a node, as JAX has it."""
    if kind is collections.OrderedDict:
        return tuple(data)
    if kind is collections.defaultdict:
        return data[0], tuple(data[1])
    return data


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """(children, auxiliary data) of a container; ValueError for a leaf."""
    found = _container(tree)
    return found.children, found.data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """([(key, child), ...], auxiliary data) of a container; ValueError for a leaf."""
    found = _container(tree)
    return tuple(zip(found.keys, found.children, strict=True)), found.data


def _container(tree: Any) -> OneLevel:
    found = one_level(tree)
    if found is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}: it is a leaf")
    return found

"""The container classes of pytrees, the registration of users' classes, and the parts of a node.

optree flattens; it gets each registered class once. This module keeps what optree has no place for: the functions that
give keys with the children, which only paths need.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from .keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from .library import optree

NAMESPACE = "hloom"
C = TypeVar("C", bound=type)


class _Registered(NamedTuple):
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None
    keys_of_class: bool = False
    """All objects of the class have the same keys."""


_registered: dict[type, _Registered] = {}
DATA_FIELDS: dict[type, tuple[Sequence[str], Sequence[str]]] = {}
"""Of registered dataclasses: the fields that are children, and those that are a part of the structure."""
_SEQUENCES = (tuple, list, collections.deque)
_DICTIONARIES = (dict, collections.OrderedDict, collections.defaultdict)
_BUILTIN: frozenset[type[Any]] = frozenset((*_SEQUENCES, *_DICTIONARIES, type(None)))


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

    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> hloom.tree.register_pytree_node(Point, lambda p: ((p.x, p.y), None), lambda _, children: Point(*children))
    >>> hloom.tree.leaves([Point(1, 2), 3])
    [1, 2, 3]
    """
    if nodetype in _BUILTIN or nodetype in _registered:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}. Register it only once.")

    def flatten(node: Any) -> tuple[Iterable[Any], Any]:
        pair: Any = flatten_func(node)
        if type(pair) is not tuple or len(pair) != 2 or (type(pair[0]) is not tuple and not _is_iterable(pair[0])):
            where = " where 'children' is iterable" if type(pair) is tuple and len(pair) == 2 else ""
            raise ValueError(
                "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple"
                f"{where}, got {short_repr(pair)}: see the flatten function of {nodetype.__name__}"
            )
        return cast(tuple[Iterable[Any], Any], pair)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a namedtuple may have a registration of its own, as in JAX
        optree.register_pytree_node(nodetype, flatten, unflatten_func, namespace=NAMESPACE)
    _registered[nodetype] = _Registered(flatten, flatten_with_keys_func)


def _is_iterable(children: object) -> bool:
    return hasattr(children, "__iter__") or hasattr(children, "__getitem__")


def short_repr(value: object) -> str:
    """The text of an object in messages."""
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def register_pytree_node_class(cls: C) -> C:
    """Class decorator for a class with `tree_flatten(self)` and a class method `tree_unflatten(aux, children)`.

    >>> @hloom.tree.register_pytree_node_class
    ... class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> hloom.tree.leaves(Point(1, 2))
    [1, 2]
    """
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

    flatten_func: the same without keys, where that is faster; used if no path is needed.

    >>> import hloom
    >>> from hloom.tree_util import GetAttrKey, keystr, register_pytree_with_keys
    >>> class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> flatten = lambda p: ([(GetAttrKey("x"), p.x)], None)
    >>> register_pytree_with_keys(Point, flatten, lambda _, children: Point(*children))
    >>> [keystr(path) for path, _ in hloom.tree.leaves_with_path([Point(1)])]
    ['[0].x']
    """

    def without_keys(node: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, auxiliary = flatten_with_keys(node)
        return tuple([child for _, child in pairs]), auxiliary

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: C) -> C:
    """Class decorator for a class with `tree_flatten_with_keys(self)` and a class method `tree_unflatten(aux,
    children)`; `tree_flatten(self)`, if there is one, is used if no path is needed.

    >>> import hloom
    >>> from hloom.tree_util import GetAttrKey, keystr, register_pytree_with_keys_class
    >>> @register_pytree_with_keys_class
    ... class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return [(GetAttrKey("x"), self.x)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> [keystr(path) for path, _ in hloom.tree.leaves_with_path([Point(1)])]
    ['[0].x']
    """
    node: Any = cls
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(node, operator.methodcaller("tree_flatten_with_keys"), node.tree_unflatten, flatten)
    return cls


def register_static(cls: C) -> C:
    """Class decorator: objects of the class have no leaves, and are part of the structure. They must be hashable.

    >>> import hloom
    >>> from dataclasses import dataclass
    >>> @hloom.tree_util.register_static
    ... @dataclass(frozen=True)
    ... class Options:
    ...     steps: int
    >>> hloom.tree.leaves([1.5, Options(3)])
    [1.5]
    """
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

    >>> import hloom
    >>> from dataclasses import dataclass
    >>> @hloom.tree.register_dataclass
    ... @dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = hloom.tree.static(default="layer")
    >>> hloom.tree.map(lambda x: 2 * x, Layer(1.5, "first"))
    Layer(w=3.0, name='first')
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
    DATA_FIELDS[nodetype] = data, meta
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
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. Got "
                f"nodetype={nodetype}"
            )
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
    all_once = "data_fields and meta_fields must include all dataclass fields (of __init__), each once"
    for rule, what, names in (
        ("data_fields and meta_fields must not overlap", "Overlapping", both),
        (all_once, "Missing", missing),
        (f"{all_once}; these are {', '.join(declared)}", "Unexpected", unknown),
    ):
        if names:
            fields = ", ".join([repr(n) for n in names])
            raise ValueError(f"register_dataclass({name}): {rule}. {what} fields: {{{fields}}}")
    return data, meta


def incomparable(error: Exception) -> ValueError:
    """The error to raise when `error` came from a comparison of structures."""
    return ValueError(
        "Exception raised while checking equality of metadata fields of pytree (or of static arguments): "
        f"{type(error).__name__}: {error}\n  Such fields must be hashable, and == must give one bool: arrays must be "
        "data fields instead. Likewise, static arguments should be comparable using __eq__."
    )


def static_field(**kwargs: Any) -> Any:
    """A field of a dataclass that `register_dataclass` takes for metadata: as `dataclasses.field`, with its options.

    >>> import hloom
    >>> from dataclasses import dataclass
    >>> @hloom.tree.register_dataclass
    ... @dataclass
    ... class Layer:
    ...     w: float
    ...     size: int = hloom.tree.static(default=3)
    >>> hloom.tree.leaves(Layer(1.5))
    [1.5]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


# ---- one node


class OneLevel(NamedTuple):
    """The parts of a node: the keys of its children, the children, and the rest of the structure."""

    keys: tuple[Any, ...]
    children: tuple[Any, ...]
    data: Any


def container_classes() -> Iterator[type]:
    """The classes of containers, except named tuples."""
    yield from _BUILTIN
    yield from _registered


def is_container_class(kind: object) -> bool:
    """Whether it is one of `container_classes`."""
    return kind in _BUILTIN or kind in _registered


def is_tree_node(typ: type) -> bool:
    """Whether objects of this class are containers, not leaves.

    >>> hloom.tree_util.is_tree_node(dict), hloom.tree_util.is_tree_node(int)
    (True, False)
    """
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
    """Whether equal structures mean equal keys: not for a structure that a user's function returned for one object, nor
    where keys are equal and not the same, as 1 and True are."""
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
    """optree's data of a node, in JAX's form."""
    if kind is collections.OrderedDict:
        return tuple(data)
    if kind is collections.defaultdict:
        return data[0], tuple(data[1])
    return data


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """(children, auxiliary data) of a container; ValueError for a leaf.

    >>> hloom.tree_util.flatten_one_level({"b": [1, 2], "a": 3})
    ((3, [1, 2]), ('a', 'b'))
    """
    found = _container(tree)
    return found.children, found.data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """([(key, child), ...], auxiliary data) of a container; ValueError for a leaf.

    >>> hloom.tree_util.flatten_one_level_with_keys([10, [20]])
    (((SequenceKey(idx=0), 10), (SequenceKey(idx=1), [20])), None)
    """
    found = _container(tree)
    return tuple(zip(found.keys, found.children, strict=True)), found.data


def _container(tree: Any) -> OneLevel:
    found = one_level(tree)
    if found is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}: it is a leaf")
    return found

"""The container classes of pytrees: their registration, the parts of a node, and the keys of its children.

optree flattens; it gets each registered class once. `CONTAINERS` keeps what optree has no place for: the functions that
give keys with the children, which only paths need.

A path is a tuple of keys, with JAX's names and text: ``(DictKey('w'), SequenceKey(0))`` leads to ``tree['w'][0]``, and
`keystr` writes it so.
"""

from __future__ import annotations

import atexit
import collections
import dataclasses
import operator
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import BuiltinFunctionType
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

NAMESPACE = "hloom"
C = TypeVar("C", bound=type)
KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath: TypeAlias = tuple[KeyEntry, ...]


# ---- the library


def _functions_at_exit() -> list[Any]:
    """The functions that are registered with `atexit`, which compares each with the one that it is to forget."""
    met: list[Any] = []

    class Asking:
        def __eq__(self, other: object) -> bool:
            met.append(other)
            return False

    atexit.unregister(Asking())  # type: ignore[arg-type]
    return met


def _imported() -> Any:
    """optree, whose tables stay filled until the process ends.

    It registers a function with `atexit` that empties them. Functions that were registered before it run after it, and
    to them a dictionary would be a leaf. All that the tables hold goes with the process anyway, so that function is
    taken back. If optree was imported before hloom, it stays: nothing tells it from others then.
    """
    before = _functions_at_exit()
    import optree

    for function in _functions_at_exit():
        is_new = not any(function is f for f in before)
        if is_new and isinstance(function, BuiltinFunctionType) and function.__module__ is None:  # of optree, in C++
            atexit.unregister(function)
    return optree


optree = _imported()


# ---- keys


class _Key:
    """A key of one value, compared by class and value. Not a dataclass: a frozen one takes three times as long to make,
    and each path has several."""

    __slots__ = ("_value",)
    __match_args__: tuple[str, ...]
    _value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"

    def __str__(self) -> str:
        return f"[{self._value!r}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


_VALUE: Any = property(operator.attrgetter("_value"))


class SequenceKey(_Key):
    """A child of a list or tuple, by its position.

    >>> path, leaf = hloom.tree.leaves_with_path([5, 6])[1]
    >>> path
    (SequenceKey(idx=1),)
    """

    __slots__ = ()
    __match_args__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self._value = idx

    idx: int = _VALUE


class DictKey(_Key):
    """A value of a dictionary, by its key.

    >>> path, leaf = hloom.tree.leaves_with_path({"w": 1})[0]
    >>> path
    (DictKey(key='w'),)
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: Any) -> None:
        self._value = key

    key: Any = _VALUE


class GetAttrKey(_Key):
    """A field of a namedtuple, a dataclass or another object, by its name.

    >>> hloom.tree_util.keystr((hloom.tree_util.GetAttrKey("w"),))
    '.w'
    """

    __slots__ = ()
    __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        self._value = name

    name: str = _VALUE

    def __str__(self) -> str:
        return f".{self._value}"


class FlattenedIndexKey(_Key):
    """A child of a registered container that says nothing about its keys, by its position.

    >>> hloom.tree_util.keystr((hloom.tree_util.FlattenedIndexKey(0),))
    '[<flat index 0>]'
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: int) -> None:
        self._value = key

    key: int = _VALUE

    def __str__(self) -> str:
        return f"[<flat index {self._value}>]"


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ``['w'][0].bias``. `simple`: the bare keys, ``w0bias``; `separator` stands between keys.

    >>> path, leaf = hloom.tree.leaves_with_path({"w": [5, 6]})[1]
    >>> hloom.tree_util.keystr(path), hloom.tree_util.keystr(path, simple=True, separator="/")
    ("['w'][1]", 'w/1')
    """
    return separator.join([_bare(key) if simple else str(key) for key in keys])


def _bare(key: Any) -> str:
    match key:
        case SequenceKey(found) | DictKey(found) | GetAttrKey(found) | FlattenedIndexKey(found):
            return str(found)
        case _:
            return str(key)


# ---- the table of container classes


class Container(NamedTuple):
    """A class of containers, as JAX's registry has it."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    """node -> (children, auxiliary data)"""
    keys: Callable[[int, Any], tuple[Any, ...]]
    """(number of children, auxiliary data) -> the children's keys, where the structure says them"""
    with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None
    """node -> ([(key, child), ...], auxiliary data), where each object says its keys itself"""
    fields: tuple[Sequence[str], Sequence[str]] | None = None
    """Of a dataclass: the fields that are children, and those that are a part of the structure."""


def _positions(count: int, _: Any) -> tuple[Any, ...]:
    return tuple([SequenceKey(i) for i in range(count)])


def _dict_keys(_: int, keys: Any) -> tuple[Any, ...]:
    return tuple([DictKey(key) for key in keys])


def flat_positions(count: int, _: Any) -> tuple[Any, ...]:
    """The keys of a registered container that says nothing about its keys."""
    return tuple([FlattenedIndexKey(i) for i in range(count)])


def _sorted_items(dictionary: dict[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The values and the keys in the order of the leaves: keys are sorted, as far as they can be."""
    try:
        keys = sorted(dictionary)
    except TypeError:
        keys = optree.tree_structure(dict.fromkeys(dictionary, 0)).entries()
    return tuple([dictionary[key] for key in keys]), tuple(keys)


def _default_items(node: collections.defaultdict[Any, Any]) -> tuple[list[Any], Any]:
    values, keys = _sorted_items(node)
    return list(values), (node.default_factory, keys)


CONTAINERS: dict[type[Any], Container] = {
    tuple: Container(lambda node: (node, None), _positions),
    list: Container(lambda node: (node, None), _positions),
    dict: Container(_sorted_items, _dict_keys),
    type(None): Container(lambda _: ((), None), _positions),
    collections.OrderedDict: Container(lambda node: (list(node.values()), tuple(node)), _dict_keys),
    collections.defaultdict: Container(_default_items, lambda _, data: _dict_keys(0, data[1])),
    collections.deque: Container(lambda node: (list(node), node.maxlen), _positions),
}
"""All classes of containers, except named tuples."""
_when_changed: list[Callable[[], None]] = []


def container(kind: type[Any]) -> Container | None:
    """How objects of a class are taken apart; None if they are leaves."""
    found = CONTAINERS.get(kind)
    if found is not None:
        return found
    if optree.is_namedtuple_class(kind):
        fields = optree.namedtuple_fields(kind)
    elif optree.is_structseq_class(kind):
        fields = optree.structseq_fields(kind)
    else:
        return None
    keys = tuple([GetAttrKey(field) for field in fields])
    # as optree, `tuple.__iter__` calls no method that the class may have of its own
    return Container(lambda node: ([*tuple.__iter__(node)], kind), lambda *_: keys)


def is_tree_node(typ: type) -> bool:
    """Whether objects of this class are containers, not leaves.

    >>> hloom.tree_util.is_tree_node(dict), hloom.tree_util.is_tree_node(int)
    (True, False)
    """
    return container(typ) is not None


def one_level(node: Any) -> tuple[tuple[tuple[Any, Any], ...], Any] | None:
    """([(key, child), ...], auxiliary data) of a container; None for a leaf."""
    known = container(type(node))
    if known is None:
        return None
    if known.with_keys is not None:
        pairs, data = known.with_keys(node)
        return tuple(pairs), data
    found, data = known.to_iter(node)
    children = tuple(found)
    return tuple(zip(known.keys(len(children), data), children, strict=True)), data


def structure_says_keys(node: Any) -> bool:
    """Whether equal structures mean equal keys: not for a structure that a user's function returned for one object, nor
    where keys are equal and not the same, as 1 and True are."""
    known = container(type(node))
    if known is None or known.with_keys is not None:
        return known is None
    return not isinstance(node, dict) or all(type(key) is str for key in node)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """(children, auxiliary data) of a container; ValueError for a leaf.

    >>> hloom.tree_util.flatten_one_level({"b": [1, 2], "a": 3})
    ((3, [1, 2]), ('a', 'b'))
    """
    known = container(type(tree))
    if known is None:
        raise _is_a_leaf(tree)
    return known.to_iter(tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """([(key, child), ...], auxiliary data) of a container; ValueError for a leaf.

    >>> hloom.tree_util.flatten_one_level_with_keys([10, [20]])
    (((SequenceKey(idx=0), 10), (SequenceKey(idx=1), [20])), None)
    """
    found = one_level(tree)
    if found is None:
        raise _is_a_leaf(tree)
    return found


def _is_a_leaf(tree: Any) -> ValueError:
    return ValueError(f"can't tree-flatten type: {type(tree)}: it is a leaf")


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
    if nodetype in CONTAINERS:
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
    was_container = container(nodetype) is not None
    CONTAINERS[nodetype] = Container(flatten, flat_positions, flatten_with_keys_func)
    if was_container:
        for act in _when_changed:
            act()


def on_change(act: Callable[[], None]) -> None:
    """Call `act` whenever objects that were containers, of a class of named tuples, become others."""
    _when_changed.append(act)


def _is_iterable(children: object) -> bool:
    return type(children) is list or hasattr(children, "__iter__") or hasattr(children, "__getitem__")


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

    >>> class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> flatten = lambda p: ([(hloom.tree_util.GetAttrKey("x"), p.x)], None)
    >>> hloom.tree_util.register_pytree_with_keys(Point, flatten, lambda _, children: Point(*children))
    >>> [hloom.tree_util.keystr(path) for path, _ in hloom.tree.leaves_with_path([Point(1)])]
    ['[0].x']
    """

    def without_keys(node: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, auxiliary = flatten_with_keys(node)
        return [child for _, child in pairs], auxiliary

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: C) -> C:
    """Class decorator for a class with `tree_flatten_with_keys(self)` and a class method `tree_unflatten(aux,
    children)`; `tree_flatten(self)`, if there is one, is used if no path is needed.

    >>> @hloom.tree_util.register_pytree_with_keys_class
    ... class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return [(hloom.tree_util.GetAttrKey("x"), self.x)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> [hloom.tree_util.keystr(path) for path, _ in hloom.tree.leaves_with_path([Point(1)])]
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
    data, meta = _dataclass_fields(nodetype, data_fields, meta_fields, tuple(drop_fields))
    keys = tuple([GetAttrKey(name) for name in data])

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple([getattr(node, f) for f in data]), tuple([getattr(node, f) for f in meta])

    def unflatten(auxiliary: tuple[Any, ...], children: tuple[Any, ...]) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, auxiliary)))

    register_pytree_node(nodetype, flatten, unflatten)
    CONTAINERS[nodetype] = CONTAINERS[nodetype]._replace(keys=lambda *_: keys, fields=(data, meta))
    return nodetype


def _dataclass_fields(
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
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified. Got "
            f"{data_fields=} {meta_fields=}."
        )
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


def raise_incomparable(error: Exception) -> NoReturn:
    """Raise the ValueError for an error that came from a comparison of structures or of static arguments."""
    if str(error).startswith(_INCOMPARABLE):
        raise error
    raise ValueError(
        f"{_INCOMPARABLE} of pytree (or of static arguments): {type(error).__name__}: {error}\n  Such fields must be "
        "hashable, and == must give one bool: arrays must be data fields instead. Likewise, static arguments should be "
        "comparable using __eq__."
    ) from error


_INCOMPARABLE = "Exception raised while checking equality of metadata fields"


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

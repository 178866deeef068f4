"""The structure of arguments and results in files: which containers a file can name, and how.

Tuples, lists, None and dictionaries whose keys are strings are written as they are. Another class needs a name, and a
function that writes its auxiliary data. JAX's functions and rules.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..tracer.trees import tree
from ..tracer.trees.nodes import NAMESPACE, optree
from ..tracer.trees.treedef import PyTreeDef
from . import schema

C = TypeVar("C", bound=type)


class _Registered(NamedTuple):
    """How nodes of a class are written."""

    nodetype: type[Any]
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    make: Callable[[Any, Sequence[Any]], Any]
    """(auxiliary data, children) -> node"""


_BY_TYPE: dict[type[Any], _Registered] = {}
_BY_NAME: dict[str, _Registered] = {}


def register_pytree_node_serialization(
    nodetype: C,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> C:
    """Let exported functions take and return nodes of a class that is a container (`tree_util.register_pytree_node`).

    serialized_name: the name of the class in files.
    serialize_auxdata, deserialize_auxdata: write and read the auxiliary data of a node.
    from_children: (auxiliary data, children) -> node; by default, the function with which the class was registered.

    Returns `nodetype`. ValueError if the class or the name is registered already, and for a class that is no container.

    >>> class Point:
    ...     def __init__(self, x, unit):
    ...         self.x, self.unit = x, unit
    >>> hloom.tree_util.register_pytree_node(Point, lambda p: ((p.x,), p.unit), lambda unit, xs: Point(xs[0], unit))
    >>> hloom.export.register_pytree_node_serialization(
    ...     Point, serialized_name="example.Point", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    ... ).__name__
    'Point'
    """
    if nodetype in _BY_TYPE:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration was with "
            f"serialized_name `{_BY_TYPE[nodetype].name}`."
        )
    if serialized_name in _BY_NAME:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`. Previous registration was "
            f"for type `{_BY_NAME[serialized_name].nodetype}`."
        )
    if from_children is None:
        is_named = optree.is_namedtuple_class(nodetype)
        entry = None if is_named else optree.register_pytree_node.get(nodetype, namespace=NAMESPACE)
        if entry is None:
            raise ValueError(
                "If `from_children` is not present, you must call first `hloom.tree_util.register_pytree_node` for "
                f"`{nodetype}`"
            )
        from_children = entry.unflatten_func
    found = _Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _BY_TYPE[nodetype] = _BY_NAME[serialized_name] = found
    return nodetype


def register_namedtuple_serialization(nodetype: C, *, serialized_name: str) -> C:
    """Let exported functions take and return a namedtuple, which has the name `serialized_name` in files.

    Returns `nodetype`. ValueError for another class, and if the class or the name is registered already.

    >>> import collections
    >>> Pair = collections.namedtuple("Pair", "first second")
    >>> hloom.export.register_namedtuple_serialization(Pair, serialized_name="example.Pair").__name__
    'Pair'
    """
    if not optree.is_namedtuple_class(nodetype):
        raise ValueError(
            "Use `hloom.export.register_pytree_node_serialization` for types other than `collections.namedtuple`."
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(nodetype._fields).encode(),  # type: ignore[attr-defined]
        deserialize_auxdata=json.loads,
        from_children=lambda names, children: nodetype(**dict(zip(names, children, strict=True))),
    )


def _ordered_keys(keys: Any) -> bytes:
    if not all(isinstance(k, str) for k in keys):
        raise NotImplementedError(
            f"Serialization of collections.OrderedDict is supported only when the keys are strings. Found keys: {keys}."
        )
    return json.dumps(keys).encode()


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_ordered_keys,
    deserialize_auxdata=json.loads,
    from_children=lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
)


# ---- the objects of the schema

_PLAIN = {type(None): schema.NONE, tuple: schema.TUPLE, list: schema.LIST, dict: schema.DICT}


def written_tree(treedef: PyTreeDef) -> dict[str, Any]:
    """The structure as an object of the schema. TypeError for a dictionary with other keys than strings, ValueError for
    a container that has no name in files."""
    node = treedef.node_data()
    if node is None:
        return {"kind": schema.LEAF}
    kind, data = node
    children = [written_tree(child) for child in treedef.children()]
    found: dict[str, Any] = {"kind": _PLAIN.get(kind, schema.CUSTOM), "children": children or None}
    if kind is dict:
        for key in data:
            if not isinstance(key, str):
                raise TypeError(
                    f"Serialization is supported only for dictionaries with string keys. Found key {key} of type "
                    f"{type(key)}."
                )
        found["children_names"] = list(data)
    elif kind not in _PLAIN:
        if kind not in _BY_TYPE:
            raise ValueError(
                f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
                "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."
            )
        text = _BY_TYPE[kind].write(data)
        if not isinstance(text, bytes | bytearray):
            raise ValueError(
                f"The custom serialization function for `{kind}` must return a `bytes` object. It returned a "
                f"{type(text)}."
            )
        found |= {"custom_name": _BY_TYPE[kind].name, "custom_auxdata": bytes(text)}
    return found


def read_tree(found: Mapping[str, Any], leaves: Sequence[Any]) -> PyTreeDef:
    """The structure of an object of the schema. `leaves`: stand-ins for its leaves, from which nodes are made: a class
    may look at what it is given. ValueError for a class that is not registered, and for a wrong number of leaves."""
    rest = iter(leaves)
    made = tree.structure(_node(found, rest))
    if made.num_leaves != len(leaves) or next(rest, None) is not None:
        raise ValueError(f"the file has {len(leaves)} types for the {made.num_leaves} leaves of {made}")
    return made


def _node(found: Mapping[str, Any], leaves: Iterator[Any]) -> Any:
    kind = found["kind"]
    if kind == schema.LEAF:
        leaf = next(leaves, None)
        if leaf is None:
            raise ValueError("the file has fewer types than its structures have leaves")
        return leaf
    children = [_node(child, leaves) for child in found["children"] or ()]
    if kind == schema.NONE:
        return None
    if kind == schema.TUPLE:
        return tuple(children)
    if kind == schema.LIST:
        return children
    if kind == schema.DICT:
        names = found["children_names"] or ()
        if len({*names}) != len(children):
            raise ValueError(f"a dictionary in the file has {len(children)} values for the keys {names}")
        return dict(zip(names, children, strict=True))
    if kind != schema.CUSTOM:
        raise ValueError(f"Cannot deserialize PyTreeDef with unknown kind: {kind}")
    known = _BY_NAME.get(found["custom_name"])
    if known is None:
        raise ValueError(
            f"Cannot deserialize a PyTreeDef containing an unregistered type `{found['custom_name']}`. Use "
            "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`."
        )
    return known.make(known.read(found["custom_auxdata"] or b""), children)

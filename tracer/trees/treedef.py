"""PyTreeDef, the structure of a tree, by optree with JAX's names: the paths of its leaves, its text, and where a tree
does not have it.

Only `flatten_up_to` and `unflatten` are on the way of a call that succeeds. The rest walks structures in Python.
"""

from __future__ import annotations

import collections
import difflib
import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...hlo.notebooks import in_notebooks
from ...hlo.support.tracebacks import boundaries, hide
from ..caches import BoundedCache, register_cache
from ..errors import TreeDefError
from .nodes import (
    NAMESPACE,
    KeyPath,
    container,
    flat_positions,
    keystr,
    one_level,
    optree,
    raise_incomparable,
    short_repr,
    structure_says_keys,
)


class PyTreeDef:
    """A tree's structure: hashable, compared by value. Made by `structure` and `flatten`.

    >>> hloom.tree.structure({"w": [1, 2]}), hloom.tree.structure([1]) == hloom.tree.structure([5])
    (PyTreeDef({'w': [*, *]}), True)
    """

    __slots__ = ("_spec",)

    def __init__(self, spec: Any) -> None:
        self._spec = spec

    @property
    def num_leaves(self) -> int:
        return int(self._spec.num_leaves)

    @property
    def num_nodes(self) -> int:
        """Leaves and containers; None is a container without children."""
        return int(self._spec.num_nodes)

    def children(self) -> list[PyTreeDef]:
        """The structures below the root."""
        return [PyTreeDef(child) for child in self._spec.children()]

    def node_data(self) -> tuple[type, Any] | None:
        """The root's class and auxiliary data, such as the keys of a dictionary; None for a leaf."""
        if self._spec.is_leaf():
            return None
        kind, data = root_of(self)
        return kind, None if data is kind else list(data) if kind is dict else data

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves; ValueError if their number is wrong."""
        return unflatten(self, leaves)

    def flatten_up_to(self, xs: Any) -> list[Any]:
        """The subtrees of `xs` at the places of the leaves; ValueError if `xs` has another structure above them."""
        return flatten_up_to(self, xs)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in the place of each leaf."""
        return PyTreeDef(self._spec.compose(spec_of(inner)))

    def walk(
        self, f_node: Callable[[Any, Any], Any], f_leaf: Callable[[Any], Any] | None, leaves: Iterable[Any]
    ) -> Any:
        """`f_leaf` of each of the leaves, and from the bottom up `f_node(results for the children, node data)`."""

        def visit(kind: type, data: Any, children: tuple[Any, ...]) -> Any:
            return f_node(children, list(data) if kind is dict else _jax_data(kind, data))

        try:
            return self._spec.walk(leaves, visit, f_leaf)
        except ValueError as error:
            text = _number_of_leaves(error)
            if text is None:
                raise
        raise ValueError(f"{text} The structure is {self}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not PyTreeDef:
            return NotImplemented
        try:
            try:
                return self._spec == other._spec  # type: ignore[no-any-return]
            except Exception as error:
                raise_incomparable(error)
        except BaseException as error:
            hide(error)
            raise

    def __hash__(self) -> int:
        return hash(self._spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return PyTreeDef, (self._spec,)

    def __repr__(self) -> str:
        return f"PyTreeDef({describe(self)})"

    _repr_html_ = in_notebooks


boundaries(PyTreeDef, "children", "compose", "flatten_up_to", "node_data", "unflatten", "walk")


def spec_of(value: Any) -> Any:
    """optree's object for a structure; TreeDefError if `value` is something else."""
    if type(value) is not PyTreeDef:
        raise TreeDefError(f"a PyTreeDef is needed, as hloom.tree.structure makes it, not {type(value).__name__}")
    return value._spec


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; ValueError if their number is wrong.

    >>> leaves, structure = hloom.tree.flatten({"w": [1, 2], "b": 3})
    >>> hloom.tree.unflatten(structure, [10 * x for x in leaves])
    {'w': [10, 20], 'b': 30}
    """
    try:
        return treedef._spec.unflatten(leaves)
    except (AttributeError, ValueError) as error:
        spec_of(treedef)
        text = _number_of_leaves(error)
        if text is None:
            raise
    raise ValueError(f"{text} The structure is {treedef}")


def _number_of_leaves(error: Exception) -> str | None:
    """The text of optree's error for a wrong number of leaves; None for another error."""
    text = str(error)
    is_one = text.startswith(("Too few leaves for PyTreeSpec", "Too many leaves for PyTreeSpec"))
    return text.replace("PyTreeSpec", "PyTreeDef") if is_one else None


def flatten_up_to(treedef: PyTreeDef, tree: Any, name: str = "tree") -> list[Any]:
    """The subtrees of `tree` at the places of the leaves of `treedef`.

    ValueError if `tree` has another structure above them: it says where in `name`, the tree with this structure.
    """
    try:
        subtrees: list[Any] = treedef._spec.flatten_up_to(tree)
        return subtrees
    except ValueError:
        problem = next(differences(treedef, tree, name), None)
        if problem is None:
            raise
    raise ValueError(f"pytree structure error: {problem}")


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures.

    >>> hloom.tree_util.treedef_tuple([hloom.tree.structure(1), hloom.tree.structure([2, 3])])
    PyTreeDef((*, [*, *]))
    """
    return PyTreeDef(optree.treespec_tuple([spec_of(t) for t in treedefs], namespace=NAMESPACE))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures below the root.

    >>> hloom.tree_util.treedef_children(hloom.tree.structure([1, {"a": 2}]))
    [PyTreeDef(*), PyTreeDef({'a': *})]
    """
    spec_of(treedef)
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """True for the structure of one leaf, or of an empty container.

    >>> [hloom.tree_util.treedef_is_leaf(hloom.tree.structure(x)) for x in (1, [1])]
    [True, False]
    """
    return bool(spec_of(treedef).num_nodes == 1)


def treedef_is_strict_leaf(treedef: PyTreeDef) -> bool:
    """True for the structure of one leaf alone."""
    return bool(treedef._spec.is_leaf())


def ordered(treedef: PyTreeDef) -> PyTreeDef:
    """The same structure, equal to it, but with sorted keys in the dictionaries that it makes.

    A structure makes them in the order of the dictionary that was flattened. But programs are shared by all equal
    structures, and a program's result must not depend on the order of the first caller.
    """
    spec = treedef._spec
    return treedef if spec.num_nodes == spec.num_leaves else PyTreeDef(spec.transform(_with_sorted_keys))


def _with_sorted_keys(node: Any) -> Any:
    if node.type not in (dict, collections.defaultdict):
        return node
    made = node.unflatten(range(node.num_leaves))
    made.clear()
    made.update(dict.fromkeys(node.entries(), 0))
    return optree.tree_structure(made)


# ---- the parts of the root


def root_of(treedef: PyTreeDef) -> tuple[type, Any]:
    """The class and the auxiliary data of the root of a structure that is no leaf, as `nodes.one_level` has them."""
    spec = treedef._spec
    kind, data, _ = spec.one_level().walk([None] * spec.num_children, lambda *node: node)
    return kind, _jax_data(kind, data)


def _jax_data(kind: type, data: Any) -> Any:
    """optree's data of a node, in JAX's form."""
    if kind is dict or kind is collections.OrderedDict:
        return tuple(data)
    if kind is collections.defaultdict:
        return data[0], tuple(data[1])
    return data


def keys_of_root(treedef: PyTreeDef) -> tuple[Any, ...]:
    """The keys of the root's children.

    A registered class may say the keys of an object only, so one is made with numbers for leaves. If its class does not
    take these, positions are its keys.
    """
    kind, data = root_of(treedef)
    known, count = container(kind), treedef._spec.num_children
    assert known is not None
    if known.with_keys is None:
        return known.keys(count, data)
    try:
        pairs, _ = known.with_keys(treedef._spec.unflatten(range(treedef.num_leaves)))
        keys = tuple([key for key, _ in pairs])
        if len(keys) == count:
            return keys
    except Exception:
        pass
    return flat_positions(count, None)


# ---- paths


def paths_of_structure(treedef: PyTreeDef) -> list[KeyPath[Any]]:
    """The path of each leaf of a structure."""
    if treedef_is_strict_leaf(treedef):
        return [()]
    parts = zip(keys_of_root(treedef), treedef.children(), strict=True)
    return [(key, *path) for key, child in parts for path in paths_of_structure(child)]


def leaf_paths(
    tree: Any, is_leaf: Callable[[KeyPath[Any], Any], bool] | None = None, path: KeyPath[Any] = ()
) -> list[KeyPath[Any]]:
    """The path of each leaf. `is_leaf` is asked about each node and each leaf, parents first."""
    parts = None if is_leaf is not None and is_leaf(path, tree) else one_level(tree)
    if parts is None:
        return [path]
    return [found for key, child in parts[0] for found in leaf_paths(child, is_leaf, (*path, key))]


_paths: BoundedCache[list[KeyPath[Any]]] = BoundedCache(256)
"""Paths of structures that say all keys."""
register_cache(_paths)


def paths_of_tree(tree: Any, treedef: PyTreeDef) -> list[KeyPath[Any]]:
    """The path of each leaf of `tree`, which has the structure `treedef`. Trees are flattened again and again: the walk
    is made once for a structure, where that says the keys."""
    try:
        found = _paths.get(treedef)
    except ValueError:  # auxiliary data without ==
        return leaf_paths(tree)
    if found is None:
        say_keys: list[bool] = []

        def look(_: KeyPath[Any], node: Any) -> bool:
            say_keys.append(structure_says_keys(node))
            return False

        found = leaf_paths(tree, look)
        if all(say_keys):
            _paths[treedef] = found
    return found


# ---- differences


def differences(
    treedef: PyTreeDef,
    tree: Any,
    name: str,
    exact: bool = False,
    write: Callable[[KeyPath[Any]], str] | None = None,
    path: KeyPath[Any] = (),
) -> Iterator[str]:
    """Where `tree` does not have the structure `treedef`, and how: each place, but none inside of another.

    name: the name of the tree with the structure.
    exact: there must be leaves where `treedef` has some; else there may be any trees.
    write: how a path is written; by default `name`, then the keys.
    """
    place = write(path) if write is not None else f"{name}{keystr(path)}"
    if treedef_is_strict_leaf(treedef):
        if exact and one_level(tree) is not None:
            yield (
                f"different types at key path\n    {place}\nwhere {name} has a leaf, but the other tree has a subtree "
                f"of type\n    {type(tree)}"
            )
        return
    kind, wanted = root_of(treedef)
    if type(tree) is not kind:
        yield (
            f"different types at key path\n    {place}\nwhere {name} has a subtree of type\n    {kind}\nbut the other "
            f"tree has a subtree of different type\n    {type(tree)}\n{_expected(kind, tree)}"
        )
        return
    parts = one_level(tree)
    assert parts is not None
    pairs, data = parts
    count = treedef._spec.num_children
    if kind in (tuple, list):
        if count != len(pairs):
            yield (
                f"different lengths of {kind.__name__} at key path\n    {place}\nwhere {name} has a subtree of type "
                f"{kind.__name__} of length {count}, but the other tree has one of length {len(pairs)}\n"
                f"{kind.__name__.capitalize()} arity mismatch: {len(pairs)} != {count}; {kind.__name__}: "
                f"{short_repr(tree)}."
            )
            return
    elif count != len(pairs) or wanted != data:
        differ = "numbers of pytree children" if count != len(pairs) else "pytree metadata"
        if issubclass(kind, dict) and (keys := _key_difference(kind, wanted, data)):
            found = f"the keys\n    {keys}"
        elif count != len(pairs):
            found = f"{count} children, but the other tree has one of the same type with {len(pairs)}"
        else:
            found = f"metadata\n    {_metadata_difference(wanted, data)}"
        yield (
            f"different {differ} at key path\n    {place}\nwhere {name} has a subtree of type\n    {kind}\nwith {found}"
        )
        return
    for (key, child), inner in zip(pairs, treedef.children(), strict=True):
        yield from differences(inner, child, name, exact, write, (*path, key))


def _expected(kind: type, tree: Any) -> str:
    """The expected and the actual structure, in JAX's words."""
    if kind is type(None):
        advice = "None is a container without leaves: is_leaf=lambda x: x is None makes it a leaf."
        return f"Expected None, got {short_repr(tree)}.\n  {advice}"
    if kind in (tuple, list, dict):
        return f"Expected {kind.__name__}, got {short_repr(tree)}."
    if not optree.is_namedtuple_class(kind):
        return f"Custom node type mismatch: expected type: {kind}, value: {short_repr(tree)}."
    if isinstance(tree, tuple) and optree.is_namedtuple_class(type(tree)):
        return f"Named tuple type mismatch: expected type: {kind}, tuple: {short_repr(tree)}."
    return f"Expected named tuple, got {short_repr(tree)}."


def _key_difference(kind: type, wanted: Any, found: Any) -> str:
    wanted, found = ([*(data[1] if kind is collections.defaultdict else data)] for data in (wanted, found))
    missing, extra = ([k for k in a if k not in b] for a, b in ((wanted, found), (found, wanted)))
    if not missing and not extra:
        return ""
    lacks, has = (", ".join(map(repr, keys)) for keys in (missing, extra))
    differ = " and ".join(([f"lacks {lacks}"] if lacks else []) + ([f"also has {has}"] if has else []))
    mismatch = f"Dict key mismatch; expected keys: {wanted}; got: {found}."
    differing = ", ".join(map(str, missing + extra))
    return (
        f"{wanted}\nbut the other tree has\n    {found}\nso the symmetric difference on key sets is\n    {differing}\n"
        f"as it {differ}\n{mismatch}"
    )


def _metadata_difference(wanted: Any, found: Any) -> str:
    lines = difflib.ndiff(str(wanted).splitlines(), str(found).splitlines())
    return (
        f"{wanted}\nbut the other tree has one of the same type with metadata\n    {found}\nso the difference is\n"
        + textwrap.indent("\n".join([line.rstrip() for line in lines]), "    ")
    )


# ---- text


def describe(treedef: PyTreeDef) -> str:
    """A structure for messages: ``(*, [*, *])``, with a star for each leaf."""
    text: str = treedef._spec.walk(itertools.repeat("*", treedef.num_leaves), _node_text)
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
    return f"CustomNode({kind.__name__}[{_jax_data(kind, data)}], [{inside}])"

"""PyTreeDef: a tree's structure as users hold it, and the functions of `hloom.tree` that take or return one.

The tracer works with optree's own class, which is faster and cannot be given JAX's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...hlo.support.tracebacks import boundaries
from ..errors import TreeDefError
from . import tree as _tree
from .library import optree
from .nodes import (
    NAMESPACE,
    flatten_one_level,
    flatten_one_level_with_keys,
    incomparable,
    is_tree_node,
    jax_data,
    register_dataclass,
    register_pytree_node,
)
from .paths import data_of_node

IsLeaf = Callable[[Any], bool] | None


@boundaries
class PyTreeDef:
    """A tree's structure: hashable, compared by value. Made by `structure` and `flatten`.

    >>> hloom.tree.structure({"w": [1, 2]}), hloom.tree.structure([1]) == hloom.tree.structure([5])
    (PyTreeDef({'w': [*, *]}), True)
    """

    __slots__ = ("_hash", "_spec")

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._hash: int | None = None

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
        kind = self._spec.type or type(None)
        data = data_of_node(self._spec)
        return kind, None if data is kind else list(data) if kind is dict else data

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves; ValueError if their number is wrong."""
        try:
            return self._spec.unflatten(leaves)
        except ValueError as error:
            text = str(error)
            if not text.startswith(("Too few leaves for PyTreeSpec", "Too many leaves for PyTreeSpec")):
                raise
        raise ValueError(f"{text.replace('PyTreeSpec', 'PyTreeDef')} The structure is {self}")

    def flatten_up_to(self, xs: Any) -> list[Any]:
        """The subtrees of `xs` at the places of the leaves; ValueError if `xs` has another structure above them."""
        return _tree.flatten_up_to(self._spec, xs)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in the place of each leaf."""
        return PyTreeDef(self._spec.compose(spec_of(inner)))

    def walk(
        self, f_node: Callable[[Any, Any], Any], f_leaf: Callable[[Any], Any] | None, leaves: Iterable[Any]
    ) -> Any:
        """`f_leaf` of each of the leaves, and from the bottom up `f_node(results for the children, node data)`."""

        def visit(kind: type, data: Any, children: tuple[Any, ...]) -> Any:
            return f_node(children, jax_data(kind, data))

        return self._spec.walk(leaves, visit, f_leaf)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        try:
            return bool(self._spec == other._spec)
        except Exception as error:
            raise incomparable(error) from error

    def __hash__(self) -> int:
        if self._hash is None:  # not optree's, which may differ between a part of a structure and its equal
            self._hash = self._spec.walk([0] * self.num_leaves, _hash_of_node)
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return PyTreeDef, (self._spec,)

    def __repr__(self) -> str:
        return _tree.shown(self._spec)


def _hash_of_node(kind: type, data: Any, children: tuple[int, ...]) -> int:
    data = jax_data(kind, data)
    try:
        return hash((kind, tuple(data) if kind is dict else data, children))
    except TypeError:  # metadata that cannot be hashed, such as a list: they are compared, as in JAX
        return hash((kind, children))


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """(leaves, structure). The leaves of a pytree are the objects in its lists, tuples, dictionaries and other
    registered containers.

    >>> leaves, structure = hloom.tree.flatten({"w": [1, 2], "b": 3})
    >>> leaves, structure
    ([3, 1, 2], PyTreeDef({'b': *, 'w': [*, *]}))
    """
    leaves, spec = _tree.flatten(tree, is_leaf)
    return leaves, PyTreeDef(spec)


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """([(path, leaf), ...], structure); a path is a tuple of keys (DictKey, SequenceKey, GetAttrKey, ...).

    is_leaf_takes_path: `is_leaf` is called with the path and the node.

    >>> found, structure = hloom.tree.flatten_with_path({"w": [1, 2]})
    >>> found
    [((DictKey(key='w'), SequenceKey(idx=0)), 1), ((DictKey(key='w'), SequenceKey(idx=1)), 2)]
    """
    leaves, spec = _tree.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    return leaves, PyTreeDef(spec)


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure alone, without the leaves.

    >>> hloom.tree.structure({"w": [1, 2], "b": 3})
    PyTreeDef({'b': *, 'w': [*, *]})
    """
    return PyTreeDef(_tree.structure(tree, is_leaf))


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; ValueError if their number is wrong.

    >>> leaves, structure = hloom.tree.flatten({"w": [1, 2], "b": 3})
    >>> hloom.tree.unflatten(structure, [10 * x for x in leaves])
    {'w': [10, 20], 'b': 30}
    """
    spec_of(treedef)
    return treedef.unflatten(leaves)


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out. `inner_treedef`: by default the structure of the first inner tree.

    TypeError unless the tree has a leaf for each pair of leaves of both structures.

    >>> hloom.tree.transpose(hloom.tree.structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    outer = spec_of(outer_treedef)
    leaves, found = _tree.flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner = _tree.structure(_tree.flatten_up_to(outer, pytree_to_transpose, "outer_treedef")[0])
    else:
        inner = spec_of(inner_treedef)
    count = inner.num_leaves
    if len(leaves) != outer.num_leaves * count:
        raise TypeError(
            f"Mismatch: the tree to transpose has the structure\n{_tree.shown(found)}\nwhich is not\n"
            f"{_tree.shown(outer.compose(inner))}"
        )
    return _tree.unflatten(inner, [_tree.unflatten(outer, leaves[k::count]) for k in range(count)])


# ---- structures


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures below the root.

    >>> hloom.tree_util.treedef_children(hloom.tree.structure([1, {"a": 2}]))
    [PyTreeDef(*), PyTreeDef({'a': *})]
    """
    spec_of(treedef)
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """True for the structure of one leaf, or of an empty container.

    >>> import hloom
    >>> from hloom.tree_util import treedef_is_leaf
    >>> treedef_is_leaf(hloom.tree.structure(1)), treedef_is_leaf(hloom.tree.structure([1]))
    (True, False)
    """
    return bool(spec_of(treedef).num_nodes == 1)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures.

    >>> hloom.tree_util.treedef_tuple([hloom.tree.structure(1), hloom.tree.structure([2, 3])])
    PyTreeDef((*, [*, *]))
    """
    return PyTreeDef(optree.treespec_tuple([spec_of(t) for t in treedefs], namespace=NAMESPACE))


def spec_of(value: Any) -> Any:
    """optree's object for a structure; TreeDefError if `value` is something else."""
    if not isinstance(value, PyTreeDef):
        raise TreeDefError(f"a PyTreeDef is needed, as hloom.tree.structure makes it, not {type(value).__name__}")
    return value._spec


@boundaries
class PyTreeRegistry:
    """The known containers, as methods: jax.tree_util.default_registry."""

    def flatten(self, tree: Any, leaf_predicate: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
        """(leaves, structure)."""
        return flatten(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Any] | None:
        """(children, auxiliary data) of a container; None for a leaf."""
        return flatten_one_level(tree) if self._is_container(tree) else None

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any] | None:
        """([(key, child), ...], auxiliary data) of a container; None for a leaf."""
        return flatten_one_level_with_keys(tree) if self._is_container(tree) else None

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[[Any, Any], bool] | None = None
    ) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
        """([(path, leaf), ...], structure); `leaf_predicate` is called with path and node."""
        return flatten_with_path(tree, leaf_predicate, is_leaf_takes_path=True)

    def is_node(self, kind: type) -> bool:
        """Whether objects of this class are containers."""
        return is_tree_node(kind)

    def register_node(
        self,
        nodetype: type[Any],
        to_iterable: Callable[[Any], tuple[Iterable[Any], Any]],
        from_iterable: Callable[[Any, Any], Any],
        to_iterable_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
    ) -> None:
        """`register_pytree_node`."""
        register_pytree_node(nodetype, to_iterable, from_iterable, to_iterable_with_keys)

    def register_dataclass_node(self, nodetype: type, data_fields: list[str], meta_fields: list[str]) -> None:
        """`register_dataclass`."""
        register_dataclass(nodetype, data_fields, meta_fields)

    def _is_container(self, tree: Any) -> bool:
        return is_tree_node(type(tree))


default_registry = PyTreeRegistry()

"""PyTreeDef: a tree's structure as users hold it, and the functions of `hloom.tree` that take or return one.

The tracer works with optree's own class, which is faster and cannot be given JAX's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .tracer import tree as _tree
from .tracer.errors import TreeDefError
from .tracer.source import user_line

__all__ = ["PyTreeDef", "flatten", "flatten_with_path", "structure", "transpose", "unflatten"]

IsLeaf = Callable[[Any], bool] | None


class PyTreeDef:
    """A tree's structure: hashable, compared by value. Made by `structure` and `flatten`."""

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
        """The root's class, and the keys if it is a dictionary; None for a leaf."""
        if self._spec.is_leaf():
            return None
        kind = self._spec.type
        return kind or type(None), self._spec.entries() if kind is not None and issubclass(kind, dict) else None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves; ValueError if their number is wrong."""
        return _tree.unflatten(self._spec, leaves)

    def flatten_up_to(self, xs: Any) -> list[Any]:
        """The subtrees of `xs` at the places of the leaves; ValueError if `xs` has another structure above them."""
        found: list[Any] = self._spec.flatten_up_to(xs)
        return found

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in the place of each leaf."""
        return PyTreeDef(self._spec.compose(inner._spec))

    def __eq__(self, other: object) -> bool:
        return bool(self._spec == other._spec) if isinstance(other, PyTreeDef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return PyTreeDef, (self._spec,)

    def __repr__(self) -> str:
        return _tree.shown(self._spec)


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """(leaves, structure)."""
    leaves, spec = _tree.flatten(tree, is_leaf)
    return leaves, PyTreeDef(spec)


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """([(path, leaf), ...], structure); a path is a tuple of keys and indices."""
    leaves, spec = _tree.flatten_with_path(tree, is_leaf)
    return leaves, PyTreeDef(spec)


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure alone."""
    return PyTreeDef(_tree.structure(tree, is_leaf))


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; ValueError if their number is wrong."""
    return _treedef(treedef).unflatten(leaves)


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out. `inner_treedef`: by default that of the first inner tree."""
    inner = None if inner_treedef is None else _treedef(inner_treedef)._spec
    return _tree.transpose(_treedef(outer_treedef)._spec, inner, pytree_to_transpose)


def _treedef(value: Any) -> PyTreeDef:
    if not isinstance(value, PyTreeDef):
        raise TreeDefError(
            f"a PyTreeDef is needed, as hloom.tree.structure makes it, not {type(value).__name__}\n  at {user_line()}"
        )
    return value

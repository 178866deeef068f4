"""The view of a structure of a pytree: containers that unfold."""

from __future__ import annotations

from collections.abc import Iterator

from ..tracer.trees.treedef import PyTreeDef, describe, keys_of_root, treedef_is_strict_leaf
from .page import Html, details, tag, title

_MOST = 1000
"""Nodes that are shown."""
_OPEN = 2
"""Levels that are unfolded at first."""
_LONG = 60


def tree_view(structure: PyTreeDef) -> Iterator[Html]:
    """The containers of a structure, each with the keys of its children; a star for each leaf."""
    leaves = structure.num_leaves
    yield title("PyTreeDef", "", f"{leaves:,} {'leaf' if leaves == 1 else 'leaves'}")
    shown = [0]
    yield _node("", structure, shown, 0)
    if structure.num_nodes > _MOST:
        yield tag("div", f"{_MOST:,} of {structure.num_nodes:,} nodes are shown", class_="faint")


def _node(key: str, structure: PyTreeDef, shown: list[int], depth: int) -> Html:
    """One node, and those below it. `shown` counts them."""
    shown[0] += 1
    name = [tag("code", key, class_="attribute"), " "] if key else []
    text = describe(structure)
    children = structure.children()
    if treedef_is_strict_leaf(structure) or not children:
        return tag("div", *name, tag("code", text))
    keys = [str(k) for k in keys_of_root(structure)]
    inner = []
    for child_key, child in zip(keys, children, strict=True):
        if shown[0] >= _MOST:
            break
        inner.append(_node(child_key, child, shown, depth + 1))
    data = structure.node_data()
    kind = "" if data is None else data[0].__name__
    short = text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
    summary = tag("span", *name, tag("code", kind, class_="type"), " ", tag("code", short, class_="comment"))
    return details(summary, *inner, is_open=depth < _OPEN)

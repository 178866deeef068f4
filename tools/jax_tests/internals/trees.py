"""Private functions of JAX on trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloom.tracer.trees import tree
from hloom.tracer.trees.treedef import differences

import hloom


def _prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    treedef = tree.structure(prefix_tree, is_leaf)

    def error(number: int) -> Callable[[str], ValueError]:
        return lambda name: ValueError(
            f"pytree structure error: {list(differences(treedef, full_tree, name))[number]}"
        )

    return [error(k) for k in range(len(list(differences(treedef, full_tree, "prefix"))))]


def _broadcast_flattened_prefix(leaves: Sequence[Any], prefix: Any, full: Any) -> list[Any]:
    return hloom.tree.leaves(
        hloom.tree.broadcast(prefix.unflatten(leaves), full.unflatten([0] * full.num_leaves)),
    )


PRIVATE: dict[tuple[str, str], Any] = {
    ("tree_util", "prefix_errors"): _prefix_errors,
    ("tree_util", "broadcast_flattened_prefix_with_treedef"): _broadcast_flattened_prefix,
}

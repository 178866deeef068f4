"""float0: the dtype of tangents of integers and booleans. Such an array has a shape and no elements.

HLO has no such type. A program therefore takes and returns no float0 arrays: in the trees of its arguments and results
each is a node without leaves, from which unflattening makes the array again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import float0 as float0
from ..trees import tree


class _Node:
    """A float0 array as a node."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


tree.register_pytree_node(_Node, lambda node: ((), node.shape), lambda shape, _: np.zeros(shape, float0))


def is_float0(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype == float0


def hide_float0(full: Any) -> Any:
    """`full`, a tree, with a node in place of each float0 array; itself if there is none."""
    if not any(is_float0(leaf) for leaf in tree.leaves(full)):
        return full
    return tree.map(lambda leaf: _Node(leaf.shape) if is_float0(leaf) else leaf, full)

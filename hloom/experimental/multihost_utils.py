"""`hloom.experimental.multihost_utils`: values of all processes, with names of jax.experimental.multihost_utils. There
is one process."""

from typing import Any as _Any

import numpy as _np

from ..namespaces import publish as _publish
from ..tracer import tree as _tree

__all__ = ["assert_equal", "broadcast_one_to_all", "process_allgather", "sync_global_devices"]


def broadcast_one_to_all(in_tree: _Any, is_source: bool | None = None) -> _Any:
    """The arrays of the first process, as NumPy arrays."""
    return _tree.map(_np.asarray, in_tree)


def process_allgather(in_tree: _Any, tiled: bool = False) -> _Any:
    """The arrays of all processes, as NumPy arrays, one behind the other: in a new first dimension, of size 1, or with
    `tiled` in the first that there is."""
    return _tree.map(lambda x: _np.asarray(x) if tiled else _np.asarray(x)[None], in_tree)


def assert_equal(in_tree: _Any, fail_message: str = "") -> None:
    """AssertionError unless all processes have the same arrays; TypeError for what is no array."""
    for leaf in _tree.leaves(in_tree):
        if _np.asarray(leaf).dtype == object:
            raise TypeError(f"assert_equal: {leaf!r} is no array")


def sync_global_devices(name: str) -> None:
    """Wait until all processes are here."""


_publish(__name__)

"""`hloom.tree`: pytrees."""

from .namespaces import publish as _publish
from .tracer.tree import (
    all,
    leaves,
    map,
    reduce,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
)
from .treedef import PyTreeDef, flatten, flatten_with_path, structure, transpose, unflatten

__all__ = [
    "PyTreeDef",
    "all",
    "flatten",
    "flatten_with_path",
    "leaves",
    "map",
    "reduce",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "structure",
    "transpose",
    "unflatten",
]

_publish(__name__)

"""`hloom.tree`: pytrees."""

from .namespaces import publish as _publish
from .tracer.trees.nodes import static_field as static
from .tracer.trees.tree import (
    all,
    broadcast,
    leaves,
    leaves_with_path,
    map,
    map_with_path,
    reduce,
    reduce_associative,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
)
from .tracer.trees.treedef import PyTreeDef, flatten, flatten_with_path, structure, transpose, unflatten

__all__ = [
    "PyTreeDef",
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

_publish(__name__)

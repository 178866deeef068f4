"""`hloom.tree_util`: the functions of `hloom.tree` under the names of jax.tree_util."""

from .namespaces import publish as _publish
from .tracer.tree import all as tree_all
from .tracer.tree import leaves as tree_leaves
from .tracer.tree import map as tree_map
from .tracer.tree import reduce as tree_reduce
from .tracer.tree import register_dataclass, register_pytree_node, register_pytree_node_class
from .treedef import PyTreeDef
from .treedef import flatten as tree_flatten
from .treedef import flatten_with_path as tree_flatten_with_path
from .treedef import structure as tree_structure
from .treedef import transpose as tree_transpose
from .treedef import unflatten as tree_unflatten

__all__ = [
    "PyTreeDef",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "tree_all",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_map",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
]

_publish(__name__)

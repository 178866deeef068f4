"""`hloom.tree_util`: the functions of `hloom.tree` under the names of jax.tree_util."""

from .namespaces import publish as _publish
from .tracer.trees.keys import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, KeyPath, SequenceKey, keystr
from .tracer.trees.nodes import (
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from .tracer.trees.partial import Partial
from .tracer.trees.tree import all as tree_all
from .tracer.trees.tree import all_leaves
from .tracer.trees.tree import broadcast as tree_broadcast
from .tracer.trees.tree import leaves as tree_leaves
from .tracer.trees.tree import leaves_with_path as tree_leaves_with_path
from .tracer.trees.tree import map as tree_map
from .tracer.trees.tree import map_with_path as tree_map_with_path
from .tracer.trees.tree import reduce as tree_reduce
from .tracer.trees.tree import reduce_associative as tree_reduce_associative
from .tracer.trees.treedef import PyTreeDef, default_registry, treedef_children, treedef_is_leaf, treedef_tuple
from .tracer.trees.treedef import flatten as tree_flatten
from .tracer.trees.treedef import flatten_with_path as tree_flatten_with_path
from .tracer.trees.treedef import structure as tree_structure
from .tracer.trees.treedef import transpose as tree_transpose
from .tracer.trees.treedef import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

_publish(__name__)

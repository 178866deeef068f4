from .tracer.trees.nodes import (
    DictKey as DictKey, flatten_one_level as flatten_one_level,
    flatten_one_level_with_keys as flatten_one_level_with_keys, FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey, is_tree_node as is_tree_node, KeyEntry as KeyEntry, KeyPath as KeyPath,
    keystr as keystr, register_dataclass as register_dataclass, register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class, register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class, register_static as register_static,
    SequenceKey as SequenceKey,
)
from .tracer.trees.tree import (
    all as _all, all_leaves as all_leaves, broadcast as _broadcast, default_registry as default_registry,
    flatten as _flatten, flatten_with_path as _flatten_with_path, leaves as _leaves,
    leaves_with_path as _leaves_with_path, map as _map, map_with_path as _map_with_path, Partial as Partial,
    reduce as _reduce, reduce_associative as _reduce_associative, structure as _structure, transpose as _transpose,
)
from .tracer.trees.treedef import (
    PyTreeDef as PyTreeDef, treedef_children as treedef_children, treedef_is_leaf as treedef_is_leaf,
    treedef_tuple as treedef_tuple, unflatten as _unflatten,
)

tree_all = _all
tree_broadcast = _broadcast
tree_flatten = _flatten
tree_flatten_with_path = _flatten_with_path
tree_leaves = _leaves
tree_leaves_with_path = _leaves_with_path
tree_map = _map
tree_map_with_path = _map_with_path
tree_reduce = _reduce
tree_reduce_associative = _reduce_associative
tree_structure = _structure
tree_transpose = _transpose
tree_unflatten = _unflatten

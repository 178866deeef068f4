from .tracer.trees.keys import (
    DictKey as DictKey, FlattenedIndexKey as FlattenedIndexKey, GetAttrKey as GetAttrKey, KeyEntry as KeyEntry,
    KeyPath as KeyPath, keystr as keystr, SequenceKey as SequenceKey,
)
from .tracer.trees.nodes import (
    flatten_one_level as flatten_one_level, flatten_one_level_with_keys as flatten_one_level_with_keys,
    is_tree_node as is_tree_node, register_dataclass as register_dataclass,
    register_pytree_node as register_pytree_node, register_pytree_node_class as register_pytree_node_class,
    register_pytree_with_keys as register_pytree_with_keys,
    register_pytree_with_keys_class as register_pytree_with_keys_class, register_static as register_static,
)
from .tracer.trees.partial import Partial as Partial
from .tracer.trees.tree import (
    all as _all, all_leaves as all_leaves, broadcast as _broadcast, leaves as _leaves,
    leaves_with_path as _leaves_with_path, map as _map, map_with_path as _map_with_path, reduce as _reduce,
    reduce_associative as _reduce_associative,
)
from .tracer.trees.treedef import (
    default_registry as default_registry, flatten as _flatten, flatten_with_path as _flatten_with_path,
    PyTreeDef as PyTreeDef, structure as _structure, transpose as _transpose, treedef_children as treedef_children,
    treedef_is_leaf as treedef_is_leaf, treedef_tuple as treedef_tuple, unflatten as _unflatten,
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

from .tracer.trees.nodes import (
    register_dataclass as register_dataclass, register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class, static_field as _static_field,
)
from .tracer.trees.tree import (
    all as all, broadcast as broadcast, flatten as flatten, flatten_with_path as flatten_with_path, leaves as leaves,
    leaves_with_path as leaves_with_path, map as map, map_with_path as map_with_path, reduce as reduce,
    reduce_associative as reduce_associative, structure as structure, transpose as transpose,
)
from .tracer.trees.treedef import PyTreeDef as PyTreeDef, unflatten as unflatten

static = _static_field

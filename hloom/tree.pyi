from .tracer.trees.nodes import static_field as _static_field
from .tracer.trees.tree import (
    all as all, broadcast as broadcast, leaves as leaves, leaves_with_path as leaves_with_path, map as map,
    map_with_path as map_with_path, reduce as reduce, reduce_associative as reduce_associative,
    register_dataclass as register_dataclass, register_pytree_node as register_pytree_node,
    register_pytree_node_class as register_pytree_node_class,
)
from .tracer.trees.treedef import (
    flatten as flatten, flatten_with_path as flatten_with_path, PyTreeDef as PyTreeDef, structure as structure,
    transpose as transpose, unflatten as unflatten,
)

static = _static_field

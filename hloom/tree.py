"""`hloom.tree`: pytrees."""

from .tracer.tree import PyTreeDef as PyTreeDef
from .tracer.tree import all as all
from .tracer.tree import flatten as flatten
from .tracer.tree import flatten_with_path as flatten_with_path
from .tracer.tree import leaves as leaves
from .tracer.tree import map as map
from .tracer.tree import reduce as reduce
from .tracer.tree import register_dataclass as register_dataclass
from .tracer.tree import register_pytree_node as register_pytree_node
from .tracer.tree import register_pytree_node_class as register_pytree_node_class
from .tracer.tree import structure as structure
from .tracer.tree import transpose as transpose
from .tracer.tree import unflatten as unflatten

"""jax._src.tree_util: which classes are containers."""

from types import MappingProxyType as _MappingProxyType

from ...namespaces import publish as _publish
from ...tracer.trees.nodes import CONTAINERS as _CONTAINERS

__all__ = ["_registry"]

_registry = _MappingProxyType(_CONTAINERS)
"""The registered classes of containers; to read, `register_pytree_node` adds."""

_publish(__name__)

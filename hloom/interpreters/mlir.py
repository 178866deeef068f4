"""`hloom.interpreters.mlir`: how primitives are lowered, with the names of jax.interpreters.mlir."""

from ..namespaces import publish as _publish

_publish(__name__)

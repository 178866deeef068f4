"""`hloom.example_libraries`: small libraries of JAX's: optimizers, and networks made of layers."""

from ..namespaces import publish as _publish

_publish(__name__)

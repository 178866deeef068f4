"""`hloom.interpreters.mlir`: how primitives are lowered, with the names of jax.interpreters.mlir."""

from ..namespaces import publish as _publish
from .lowering import (
    emit_python_callback,
    lower_fun,
    register_lowering,
)

__all__ = [
    "emit_python_callback",
    "lower_fun",
    "register_lowering",
]

_publish(__name__)

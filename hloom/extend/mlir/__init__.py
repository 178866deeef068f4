"""`hloom.extend.mlir`: of jax.extend.mlir, the operations that a lowering may apply to its arrays. See `dialects`."""

from ...namespaces import publish as _publish

_publish(__name__)

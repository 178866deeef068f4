"""`hloom.extend.mlir.dialects`: StableHLO's operations as functions of traced arrays, for lowerings of primitives."""

from ....namespaces import publish as _publish

_publish(__name__)

"""`hloom.experimental.pallas.ops.tpu`: JAX's kernels for TPUs."""

from .....namespaces import publish as _publish
from . import splash_attention

__all__ = ["splash_attention"]

_publish(__name__)

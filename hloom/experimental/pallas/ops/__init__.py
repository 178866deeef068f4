"""`hloom.experimental.pallas.ops`: JAX's kernels for accelerators."""

from ....namespaces import publish as _publish
from . import tpu

__all__ = ["tpu"]

_publish(__name__)

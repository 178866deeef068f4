"""`hloom.experimental.pallas.ops.tpu.splash_attention`: JAX's attention for TPUs, which Keras imports."""

from ......namespaces import publish as _publish
from . import splash_attention_kernel, splash_attention_mask

__all__ = ["splash_attention_kernel", "splash_attention_mask"]

_publish(__name__)

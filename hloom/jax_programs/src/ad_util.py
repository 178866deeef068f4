"""jax._src.ad_util."""

from ...jaxpr.primitives import primitive_named
from ...namespaces import publish as _publish

__all__ = ["stop_gradient_p"]

stop_gradient_p = primitive_named("stop_gradient")

_publish(__name__)

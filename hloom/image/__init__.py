"""`hloom.image`: images (arrays) in other sizes. Names and semantics follow jax.image."""

from ..namespaces import publish as _publish
from .resampling import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

_publish(__name__)

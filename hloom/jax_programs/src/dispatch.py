"""jax._src.dispatch."""

from ...debug.callbacks import effects_barrier as wait_for_tokens
from ...namespaces import publish as _publish

__all__ = ["wait_for_tokens"]

_publish(__name__)

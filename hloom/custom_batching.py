"""`hloom.custom_batching`: functions with batching that the user writes, with the names of jax.custom_batching."""

from .autodiff.custom_batching import custom_vmap, sequential_vmap
from .namespaces import publish as _publish

__all__ = ["custom_vmap", "sequential_vmap"]

_publish(__name__)

"""`hloom.custom_batching`: functions with batching that the user writes, with the names of jax.custom_batching."""

from .namespaces import publish as _publish

_publish(__name__)

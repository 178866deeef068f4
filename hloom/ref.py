"""`hloom.ref`: mutable arrays, with the names of jax.ref."""

from .namespaces import publish as _publish

_publish(__name__)

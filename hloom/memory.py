"""`hloom.memory`: kinds of memory, with the names of jax.memory. All are the memory of the process."""

from .namespaces import publish as _publish

_publish(__name__)

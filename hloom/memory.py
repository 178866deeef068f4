"""`hloom.memory`: kinds of memory, with the names of jax.memory. All are the memory of the process."""

from .namespaces import publish as _publish
from .tracer.arrays.layouts import Space

__all__ = ["Space"]

_publish(__name__)

"""`hloom.flatten_util`: pytrees of arrays as vectors."""

from ..namespaces import publish as _publish
from .ravel import ravel_pytree

__all__ = ["ravel_pytree"]

_publish(__name__)

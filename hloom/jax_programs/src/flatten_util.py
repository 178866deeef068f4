"""jax._src.flatten_util."""

from ...flatten_util import ravel_pytree
from ...namespaces import publish as _publish

__all__ = ["ravel_pytree"]

_publish(__name__)

"""`hloom.errors`: every error class for users, under JAX's names where it has them."""

from .namespaces import publish as _publish

_publish(__name__)

"""`hloom.ad`: where the gradients of `vjp` go, with the names of jax.ad."""

from .namespaces import publish as _publish

_publish(__name__)

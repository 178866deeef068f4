"""`hloom.interpreters.ad`: derivatives of primitives, with the names of jax.interpreters.ad."""

from ..namespaces import publish as _publish

_publish(__name__)

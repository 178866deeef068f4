"""`hloom.test_util`: derivatives tested against finite differences, with the names of jax.test_util."""

from .namespaces import publish as _publish

_publish(__name__)

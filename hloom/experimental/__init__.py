"""`hloom.experimental`: names that JAX programs import from `jax.experimental`."""

from ..namespaces import publish as _publish

_publish(__name__)

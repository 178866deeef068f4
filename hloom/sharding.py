"""`hloom.sharding`: meshes and shardings over the one device, with the names of jax.sharding."""

from .namespaces import publish as _publish

_publish(__name__)

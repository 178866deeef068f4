"""`hloom.sharding`: meshes, and how arrays are divided over them, with the names of jax.sharding."""

from .namespaces import publish as _publish

_publish(__name__, examples=("from hloom import sharding",))

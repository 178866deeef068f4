"""`hloom.monitoring`: listening to events of the library, with the names of jax.monitoring."""

from .namespaces import publish as _publish

_publish(__name__, examples=("from hloom import monitoring",))

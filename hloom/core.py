"""`hloom.core`: the names of jax.core that libraries use. `hloom.extend.core` has more."""

from .namespaces import publish as _publish

_publish(__name__)

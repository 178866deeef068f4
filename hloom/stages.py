"""`hloom.stages`: the stages of a jitted function, with the names of jax.stages."""

from .namespaces import publish as _publish

_publish(__name__)

"""`hloom.interpreters.xla`: classes of libraries as arguments, with the names of jax.interpreters.xla."""

from ..namespaces import publish as _publish

_publish(__name__)

"""`hloom.extend.core`: primitives that a library adds, and the classes of jaxprs. The names of jax.extend.core."""

from ...namespaces import publish as _publish

_publish(__name__)

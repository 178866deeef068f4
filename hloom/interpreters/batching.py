"""`hloom.interpreters.batching`: batching rules for primitives, with the names of jax.interpreters.batching."""

from ..namespaces import publish as _publish

_publish(__name__)

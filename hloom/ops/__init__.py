"""`hloom.ops`: sums, products and extrema over segments of an array. Names and semantics follow jax.ops."""

from ..namespaces import publish as _publish

_publish(__name__)

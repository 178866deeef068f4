"""`hloom.ops`: sums, products and extrema over segments of an array. Names and semantics follow jax.ops."""

from ..namespaces import publish as _publish
from .segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_publish(__name__)

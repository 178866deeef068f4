"""`hloom.interpreters.batching`: batching rules for primitives, with the names of jax.interpreters.batching."""

from ..namespaces import publish as _publish
from .batches import (
    axis_primitive_batchers,
    bdim_at_front,
    defbroadcasting,
    defvectorized,
    fancy_primitive_batchers,
    primitive_batchers,
)

__all__ = [
    "axis_primitive_batchers",
    "bdim_at_front",
    "defbroadcasting",
    "defvectorized",
    "fancy_primitive_batchers",
    "primitive_batchers",
]

_publish(__name__)

"""`hloom.interpreters.partial_eval`: functions with some known arguments, with JAX's names."""

from ..namespaces import publish as _publish
from .partial import (
    PartialVal,
    trace_to_jaxpr_nounits,
)

__all__ = [
    "PartialVal",
    "trace_to_jaxpr_nounits",
]

_publish(__name__)

"""jax._src.core."""

from ...namespaces import publish as _publish
from ...tracer.core import EVAL, current_trace

__all__ = ["trace_state_clean"]


def trace_state_clean() -> bool:
    """Whether nothing is being traced, differentiated or batched."""
    return current_trace() is EVAL


_publish(__name__)

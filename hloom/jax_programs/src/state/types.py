"""jax._src.state.types."""

from ....namespaces import publish as _publish
from ....tracer.references.refs import AbstractRef

__all__ = ["AbstractRef"]

_publish(__name__)

"""jax._src.state: mutable arrays."""

from ....namespaces import publish as _publish
from ....tracer.references.refs import AbstractRef

__all__ = ["AbstractRef"]

_publish(__name__)

"""`hloom.extend`: for libraries that add operations. See docs/primitives.md."""

from ..namespaces import publish as _publish
from . import core
from .core import Linear, Primitive

__all__ = ["Linear", "Primitive", "core"]

_publish(__name__)

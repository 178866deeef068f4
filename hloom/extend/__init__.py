"""`hloom.extend`: for libraries that add operations. See docs/primitives.md."""

from ..namespaces import publish as _publish
from . import core, primitive
from .primitive import Linear, Primitive

__all__ = ["Linear", "Primitive", "core"]

del primitive

_publish(__name__)

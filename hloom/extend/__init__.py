"""`hloom.extend`: for libraries that add operations. See docs/primitives.md."""

from .core import Linear, Primitive

__all__ = ["Linear", "Primitive"]

"""`hloom.extend`: for libraries that add operations of their own. See docs/primitives.md."""

from .core import Linear, Primitive

__all__ = ["Linear", "Primitive"]

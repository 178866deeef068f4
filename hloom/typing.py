"""`hloom.typing`: types for the annotations of programs, with the names of jax.typing."""

from numpy.typing import DTypeLike

from .tracer.arrays.operators import ArrayLike

__all__ = ["ArrayLike", "DTypeLike"]

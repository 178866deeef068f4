"""`hloom.errors`: every error class for users, under JAX's names where it has them."""

from .hlo.errors import CustomCallError, HloParseError, VerificationError
from .tracer import errors as _errors
from .tracer.errors import *  # noqa: F403

__all__ = ["CustomCallError", "HloParseError", "VerificationError"]
__all__ += _errors.__all__

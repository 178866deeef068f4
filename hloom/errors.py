"""`hloom.errors`: every error class that users meet, under JAX's names where it has them."""

from .hlo.errors import CustomCallError as CustomCallError
from .hlo.errors import HloParseError as HloParseError
from .hlo.errors import VerificationError as VerificationError
from .tracer.errors import *  # noqa: F403

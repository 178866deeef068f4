"""`hloom.extend.mlir.dialects.chlo`: operations of arrays, by the names of jax.extend.mlir.dialects.chlo."""

from .operations import missing as _missing
from .operations import operations as _operations

_FUNCTIONS = _operations("chlo")
__all__ = sorted(_FUNCTIONS)
globals().update(_FUNCTIONS)


def __getattr__(name: str) -> object:
    raise _missing("chlo", name)

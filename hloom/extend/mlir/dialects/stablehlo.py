"""`hloom.extend.mlir.dialects.stablehlo`: operations of arrays, by the names of jax.extend.mlir.dialects.stablehlo."""

from .operations import missing as _missing
from .operations import operations as _operations

_FUNCTIONS = _operations("stablehlo")
__all__ = sorted(_FUNCTIONS)
globals().update(_FUNCTIONS)


def __getattr__(name: str) -> object:
    raise _missing("stablehlo", name)

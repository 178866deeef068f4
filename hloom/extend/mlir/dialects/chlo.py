"""`hloom.extend.mlir.dialects.chlo`: operations of arrays, by the names of jax.extend.mlir.dialects.chlo."""

from typing import Any as _Any

from .operations import missing as _missing
from .operations import operations as _operations

_FUNCTIONS = _operations("chlo")
__all__ = sorted(_FUNCTIONS)


def __getattr__(name: str) -> _Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    raise _missing("chlo", name)

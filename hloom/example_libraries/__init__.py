"""`hloom.example_libraries`: small libraries of JAX's: optimizers, and networks made of layers."""

import typing as _typing

from ..namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from . import optimizers, stax

__all__ = ["optimizers", "stax"]

_publish(__name__, "optimizers", "stax")

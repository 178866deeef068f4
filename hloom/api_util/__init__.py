"""`hloom.api_util`: functions of pytrees as functions of lists, with the names of jax.api_util."""

from .flat_functions import (
    debug_info,
    flatten_fun,
    flatten_fun_nokwargs,
    safe_map,
    shaped_abstractify,
)
from ..namespaces import publish as _publish

__all__ = [
    "debug_info",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "safe_map",
    "shaped_abstractify",
]

_publish(__name__)

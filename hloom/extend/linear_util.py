"""`hloom.extend.linear_util`: a function with transformations around it, with the names of jax.extend.linear_util."""

from ..api_util.wrapped_functions import (
    StoreException,
    WrappedFun,
    merge_linear_aux,
    transformation,
    transformation2,
    transformation_with_aux,
    transformation_with_aux2,
    wrap_init,
)
from ..namespaces import publish as _publish

__all__ = [
    "StoreException",
    "WrappedFun",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]

_publish(__name__)

"""`hloom.api_util`: functions of pytrees as functions of lists, with the names of jax.api_util."""

from ..namespaces import publish as _publish

_publish(__name__)

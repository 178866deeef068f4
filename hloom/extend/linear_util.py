"""`hloom.extend.linear_util`: a function with transformations around it, with the names of jax.extend.linear_util."""

from ..namespaces import publish as _publish

_publish(__name__)

"""`hloom.tree_util`: the functions of `hloom.tree` under the names of jax.tree_util."""

from .namespaces import publish as _publish

_publish(__name__)

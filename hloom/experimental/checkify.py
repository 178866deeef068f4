"""`hloom.experimental.checkify`: errors as values of a function. Names as in `jax.experimental.checkify`."""

from ..namespaces import publish as _publish

_publish(__name__, examples=("from hloom.experimental import checkify",))

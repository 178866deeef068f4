"""`hloom.experimental.sparse`: sparse arrays with batch and dense dimensions."""

from ...namespaces import publish as _publish

_publish(
    __name__, aliases_are_one=True, examples=("from hloom import numpy as jnp", "from hloom.experimental import sparse")
)

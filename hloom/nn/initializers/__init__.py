"""`hloom.nn.initializers`: functions (key, shape, dtype) -> array that make the first weights of a network.

Source: jax.nn.initializers.
"""

from ...namespaces import publish as _publish

_publish(__name__, aliases_are_one=True, examples=("from hloom import random", "from hloom.nn import initializers"))

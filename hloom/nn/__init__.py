"""`hloom.nn`: activations, and functions for classifiers. `initializers` is loaded when it is first used.

Names and semantics follow jax.nn.
"""

from ..namespaces import publish as _publish

_publish(__name__, aliases_are_one=True, examples=("from hloom import nn, numpy as jnp",))

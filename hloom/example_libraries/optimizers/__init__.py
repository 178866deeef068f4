"""`hloom.example_libraries.optimizers`: first-order optimizers of pytrees."""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom import numpy as jnp", "from hloom.example_libraries import optimizers"))

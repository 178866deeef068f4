"""`hloom.example_libraries.stax`: networks as layers that are put together."""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom import numpy as jnp, random", "from hloom.example_libraries import stax"))

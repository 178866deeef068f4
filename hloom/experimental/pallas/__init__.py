"""`hloom.experimental.pallas`: kernels as functions of blocks of arrays, with the names of jax.experimental.pallas.

Kernels are compiled: `docs/pallas.md`.
"""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom import numpy as jnp", "from hloom.experimental import pallas as pl"))

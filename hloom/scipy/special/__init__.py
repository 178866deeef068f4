"""`hloom.scipy.special`: special functions with SciPy's arguments."""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom import numpy as jnp", "from hloom.scipy import special"))

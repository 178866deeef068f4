"""`hloom.scipy.stats`: distributions, each a module with SciPy's functions, and statistics of samples.

Distributions are loaded when they are first used.
"""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom import numpy as jnp", "from hloom.scipy import stats"))

"""`hloom.random`: random numbers from explicit keys, the same bits as jax.random's for the same key.

    key = hloom.random.key(0)
    key, subkey = hloom.random.split(key)
    x = hloom.random.normal(subkey, (3,))

`key` makes arrays of dtype ``key<fry>``, `PRNGKey` the older plain uint32[2] arrays. All functions take both.
"""

from ..namespaces import publish as _publish
from . import counter_based as _counter_based  # noqa: F401  # registers a generator
from . import rbg as _rbg  # noqa: F401  # registers generators
from . import threefry as _threefry  # noqa: F401  # registers a generator

_publish(__name__, examples=("from hloom import random",))

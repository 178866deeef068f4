"""`hloom.random`: random numbers from explicit keys, the same bits as jax.random's for the same key.

    key = hloom.random.key(0)
    key, subkey = hloom.random.split(key)
    x = hloom.random.normal(subkey, (3,))

`key` makes arrays of dtype ``key<fry>``, `PRNGKey` the older plain uint32[2] arrays. All functions take both.
"""

from ..namespaces import publish as _publish
from . import continuous, discrete, drawing, implementations, keys, threefry
from .continuous import (
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    normal as normal,
    truncated_normal as truncated_normal,
    uniform as uniform,
)
from .discrete import (
    bernoulli as bernoulli,
    bits as bits,
    categorical as categorical,
    permutation as permutation,
    rademacher as rademacher,
    randint as randint,
)
from .keys import (
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)

__all__ = []
__all__ += continuous.__all__
__all__ += discrete.__all__
__all__ += keys.__all__

del continuous, discrete, drawing, implementations, keys, threefry

_publish(__name__)

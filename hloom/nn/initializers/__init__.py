"""`hloom.nn.initializers`: functions (key, shape, dtype) -> array that make the first weights of a network.

Source: jax.nn.initializers.
"""

from . import distributions, scaling
from .distributions import *
from .scaling import *

__all__: list[str] = []
__all__ += distributions.__all__
__all__ += scaling.__all__

del distributions, scaling

"""`hloom.nn.initializers`: functions (key, shape, dtype) -> array that make the first weights of a network.

Source: jax.nn.initializers.
"""

from ...namespaces import publish as _publish
from . import distributions, orthogonals, scaling
from .distributions import (
    Initializer as Initializer,
    constant as constant,
    normal as normal,
    ones as ones,
    truncated_normal as truncated_normal,
    uniform as uniform,
    zeros as zeros,
)
from .orthogonals import (
    delta_orthogonal as delta_orthogonal,
    orthogonal as orthogonal,
)
from .scaling import (
    glorot_normal as glorot_normal,
    glorot_uniform as glorot_uniform,
    he_normal as he_normal,
    he_uniform as he_uniform,
    kaiming_normal as kaiming_normal,
    kaiming_uniform as kaiming_uniform,
    lecun_normal as lecun_normal,
    lecun_uniform as lecun_uniform,
    variance_scaling as variance_scaling,
    xavier_normal as xavier_normal,
    xavier_uniform as xavier_uniform,
)

__all__: list[str] = []
__all__ += distributions.__all__
__all__ += orthogonals.__all__
__all__ += scaling.__all__

del distributions, orthogonals, scaling

_publish(__name__, aliases_are_one=True)

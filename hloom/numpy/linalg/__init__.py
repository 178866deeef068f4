"""`hloom.numpy.linalg`: norms and products of matrices; decompositions are missing."""

from ...namespaces import publish as _publish
from ..dot import vecdot
from ..movement import matrix_transpose
from . import diagonals, norms, products
from .diagonals import (
    diagonal as diagonal,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
)
from .norms import (
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from .products import (
    matrix_power as matrix_power,
    multi_dot as multi_dot,
)

__all__ = ["matrix_transpose", "vecdot"]
__all__ += diagonals.__all__
__all__ += norms.__all__
__all__ += products.__all__

del diagonals, norms, products

_publish(__name__)

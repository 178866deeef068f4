"""`hloom.numpy.linalg`: norms and products of matrices; decompositions are missing."""

from ...namespaces import publish as _publish
from ..dot import matmul, outer, tensordot
from ..movement import diagonal, matrix_transpose, trace
from . import norms, products
from .norms import (
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from .products import (
    matrix_power as matrix_power,
    multi_dot as multi_dot,
    vecdot as vecdot,
)

__all__ = ["diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace"]
__all__ += norms.__all__
__all__ += products.__all__

del norms, products

_publish(__name__)

"""`hloom.numpy.linalg`: norms and products of matrices; decompositions are missing."""

from ..dot import matmul, outer, tensordot
from ..movement import diagonal, matrix_transpose, trace
from . import norms, products
from .norms import *
from .products import *

__all__ = ["diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace"]
__all__ += norms.__all__
__all__ += products.__all__

del norms, products

"""`hloom.lax.linalg`: factorisations and solvers of matrices, most of them by LAPACK."""

from ...namespaces import publish as _publish
from . import lu as _lu
from . import triangular
from .lu import (
    lu as lu,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
)
from .triangular import (
    cholesky as cholesky,
    cholesky_update as cholesky_update,
    symmetric_product as symmetric_product,
    triangular_solve as triangular_solve,
)

__all__: list[str] = []
__all__ += _lu.__all__
__all__ += triangular.__all__

del triangular

_publish(__name__)

"""`hloom.scipy.sparse.linalg`: iterative solvers of linear systems."""

from ....namespaces import publish as _publish
from . import conjugate, minimal_residual, vectors
from .conjugate import (
    bicgstab as bicgstab,
    cg as cg,
)
from .minimal_residual import (
    gmres as gmres,
)

__all__: list[str] = []
__all__ += conjugate.__all__
__all__ += minimal_residual.__all__

del conjugate, minimal_residual, vectors

_publish(__name__)

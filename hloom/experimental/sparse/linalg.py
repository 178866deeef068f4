"""`hloom.experimental.sparse.linalg`: systems and eigenvalues of sparse matrices."""

from ...namespaces import publish as _publish
from .direct import spsolve as spsolve
from .lobpcg import lobpcg_standard as lobpcg_standard

__all__ = ["lobpcg_standard", "spsolve"]

_publish(__name__)

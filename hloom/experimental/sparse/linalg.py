"""`hloom.experimental.sparse.linalg`: solvers of sparse systems, with names of jax.experimental.sparse.linalg."""

from ...namespaces import publish as _publish
from .direct import spsolve as spsolve

__all__ = ["spsolve"]

_publish(__name__)

"""`hloom.lax.linalg`: factorisations and solvers of matrices, most of them by LAPACK."""

from ...namespaces import publish as _publish

_publish(__name__)

"""`hloom.experimental.sparse.linalg`: systems and eigenvalues of sparse matrices."""

from ...namespaces import publish as _publish

_publish(__name__)

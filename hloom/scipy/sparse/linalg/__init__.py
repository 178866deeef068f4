"""`hloom.scipy.sparse.linalg`: iterative solvers of linear systems."""

from ....namespaces import publish as _publish

_publish(__name__)

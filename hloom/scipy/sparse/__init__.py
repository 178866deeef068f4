"""`hloom.scipy.sparse`: solvers of linear systems. Sparse arrays are in `hloom.experimental.sparse`."""

from ...namespaces import publish as _publish

_publish(__name__)

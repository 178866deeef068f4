"""`hloom.scipy.optimize`: minimization of functions of a vector."""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom.scipy import optimize",))

"""`hloom.scipy.optimize`: minimization of functions of a vector."""

from ...namespaces import publish as _publish

_publish(__name__)

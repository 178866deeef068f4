"""`hloom.scipy.special`: special functions with SciPy's arguments."""

from ...namespaces import publish as _publish

_publish(__name__)

"""`hloom.scipy.linalg`: linear algebra with SciPy's arguments."""

from ...namespaces import publish as _publish

_publish(__name__)

"""`hloom.scipy.cluster`: clusters of points."""

from ...namespaces import publish as _publish

_publish(__name__)

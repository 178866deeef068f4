"""`hloom.numpy.linalg`: linear algebra with matrices in the last two dimensions."""

from ...namespaces import publish as _publish

_publish(__name__)

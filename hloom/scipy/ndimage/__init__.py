"""`hloom.scipy.ndimage`: arrays as samples of functions of space."""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom.scipy import ndimage",))

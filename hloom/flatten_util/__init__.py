"""`hloom.flatten_util`: pytrees of arrays as vectors."""

from ..namespaces import publish as _publish

_publish(__name__)

"""`hloom.tree`: pytrees."""

from .namespaces import publish as _publish

_publish(__name__)

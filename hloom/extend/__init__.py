"""`hloom.extend`: for libraries that add operations. See docs/primitives.md."""

from ..namespaces import publish as _publish

_publish(__name__)

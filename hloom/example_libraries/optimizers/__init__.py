"""`hloom.example_libraries.optimizers`: first-order optimizers of pytrees."""

from ...namespaces import publish as _publish

_publish(__name__)

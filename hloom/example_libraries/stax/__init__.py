"""`hloom.example_libraries.stax`: networks as layers that are put together."""

from ...namespaces import publish as _publish

_publish(__name__)

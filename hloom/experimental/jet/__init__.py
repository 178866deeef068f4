"""`hloom.experimental.jet`: derivatives of higher order along a curve."""

from ...namespaces import publish as _publish

_publish(__name__)

"""`hloom.experimental.ode`: ordinary differential equations."""

from ...namespaces import publish as _publish

_publish(__name__)

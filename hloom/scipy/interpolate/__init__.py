"""`hloom.scipy.interpolate`: functions between points where they are known."""

from ...namespaces import publish as _publish

_publish(__name__)

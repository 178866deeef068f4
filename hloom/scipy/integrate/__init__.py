"""`hloom.scipy.integrate`: integrals of samples."""

from ...namespaces import publish as _publish

_publish(__name__)

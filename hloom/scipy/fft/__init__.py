"""`hloom.scipy.fft`: cosine transforms."""

from ...namespaces import publish as _publish

_publish(__name__)

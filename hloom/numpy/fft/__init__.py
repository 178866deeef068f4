"""`hloom.numpy.fft`: discrete Fourier transforms."""

from ...namespaces import publish as _publish

_publish(__name__)

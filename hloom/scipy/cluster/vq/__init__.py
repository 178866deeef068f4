"""`hloom.scipy.cluster.vq`: vector quantization."""

from ....namespaces import publish as _publish

_publish(__name__)

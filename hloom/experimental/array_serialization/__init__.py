"""`hloom.experimental.array_serialization`: arrays in files, written by tensorstore. Names of
jax.experimental.array_serialization.
"""

from ...namespaces import publish as _publish

_publish(__name__)

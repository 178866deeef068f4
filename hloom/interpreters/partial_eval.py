"""`hloom.interpreters.partial_eval`: functions with some known arguments, with JAX's names."""

from ..namespaces import publish as _publish

_publish(__name__)

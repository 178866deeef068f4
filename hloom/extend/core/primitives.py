"""The primitives that equations of jaxprs name. The names of jax.extend.core.primitives."""

from ...namespaces import publish as _publish

_publish(__name__)

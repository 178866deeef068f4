"""`hloom.extend.source_info_util`: which files are not the user's, with the name of jax.extend.source_info_util."""

from ..namespaces import publish as _publish

_publish(__name__)

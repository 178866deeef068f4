"""`hloom.debug`: looking into programs while they run, with JAX's names."""

from ..namespaces import publish as _publish

_publish(__name__, examples=("from hloom import debug",))

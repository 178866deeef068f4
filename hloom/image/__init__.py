"""`hloom.image`: images (arrays) in other sizes. Names and semantics follow jax.image."""

from ..namespaces import publish as _publish

_publish(__name__, examples=("from hloom import image",))

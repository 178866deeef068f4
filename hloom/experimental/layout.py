"""`hloom.experimental.layout`: layouts of arrays on a device, with names of jax.experimental.layout."""

from ..namespaces import publish as _publish

_publish(__name__, examples=("from hloom.experimental.layout import Format, Layout",))

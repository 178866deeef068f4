"""jax._src.xla_bridge: which backends run. There is one, and it always does."""

from ...namespaces import publish as _publish
from ...tracer.sharding.devices import devices as _devices

__all__ = ["_backends"]

_backends = {"cpu": _devices()[0].client}

_publish(__name__)

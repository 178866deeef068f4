"""jaxlib.xla_client: XLA's classes for Python, by their names in `jaxlib`."""

from ...namespaces import publish as _publish
from ._jax import Array, ArrayImpl, Client, Device, Memory, NamedSharding, Sharding, SingleDeviceSharding
from ._jax import JaxRuntimeError as XlaRuntimeError

__all__ = [
    "Array",
    "ArrayImpl",
    "Client",
    "Device",
    "Memory",
    "NamedSharding",
    "Sharding",
    "SingleDeviceSharding",
    "XlaRuntimeError",
]

_publish(__name__)

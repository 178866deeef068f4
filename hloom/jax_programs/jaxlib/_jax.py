"""jaxlib._jax: the classes of arrays, devices, shardings and programs."""

from ... import Array, Device
from ...errors import JaxRuntimeError
from ...namespaces import publish as _publish
from ...sharding import NamedSharding, Sharding, SingleDeviceSharding
from ...tracer.arrays.array import Array as ArrayImpl
from ...tracer.jit import PjitFunction
from ...tracer.sharding.devices import Client, Memory
from ...tree_util import PyTreeDef

__all__ = [
    "Array",
    "ArrayImpl",
    "Client",
    "Device",
    "JaxRuntimeError",
    "Memory",
    "NamedSharding",
    "PjitFunction",
    "PyTreeDef",
    "Sharding",
    "SingleDeviceSharding",
]

_publish(__name__)

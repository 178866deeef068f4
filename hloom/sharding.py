"""`hloom.sharding`: meshes and shardings over the one device, with the names of jax.sharding."""

from .autodiff.sharded import auto_axes, explicit_axes
from .namespaces import publish as _publish
from .tracer.aval import ManualAxisType
from .tracer.sharding.current_mesh import get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh
from .tracer.sharding.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
from .tracer.sharding.partition_spec import PartitionSpec
from .tracer.sharding.placement import reshard
from .tracer.sharding.shardings import NamedSharding, Sharding, SingleDeviceSharding, make_single_device_sharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]

_publish(__name__)

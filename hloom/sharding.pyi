from .autodiff.sharded import auto_axes as auto_axes, explicit_axes as explicit_axes
from .tracer.aval import ManualAxisType as ManualAxisType
from .tracer.sharding.current_mesh import (
    get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from .tracer.sharding.mesh import (
    AbstractDevice as AbstractDevice, AbstractMesh as AbstractMesh, AxisType as AxisType, Mesh as Mesh,
)
from .tracer.sharding.partition_spec import PartitionSpec as PartitionSpec
from .tracer.sharding.placement import reshard as reshard
from .tracer.sharding.shardings import (
    make_single_device_sharding as make_single_device_sharding, NamedSharding as NamedSharding, Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
)

"""Names of jax.experimental.pallas that are about GPUs and TPUs: they can be imported, and their use is an
UnsupportedError."""

from __future__ import annotations

import enum

from ...namespaces.not_written import not_written

_HOME = __name__.rpartition(".")[0]
_MESHES = "it runs kernels on the cores of a TPU or GPU; pallas_call runs one on a grid"
_SEMAPHORES = "it is for copies and cores that run at the same time, which TPUs and GPUs have"

for _names, _why in (
    ("core_map kernel", _MESHES),
    ("delay get_global select_ref semaphore semaphore_read semaphore_signal semaphore_wait", _SEMAPHORES),
):
    globals().update(not_written(_HOME, _names, _why))


class DeviceIdType(enum.Enum):
    """How devices are numbered, for signals between TPUs."""

    MESH = "mesh"
    LOGICAL = "logical"

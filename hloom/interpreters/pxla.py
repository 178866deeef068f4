"""`hloom.interpreters.pxla`: the mesh of the thread, with names of jax.interpreters.pxla."""

from ..namespaces import publish as _publish
from ..tracer.sharding.mesh import CURRENT as _CURRENT
from ..tracer.sharding.mesh import Mesh as _Mesh

__all__ = ["thread_resources"]


class _Environment:
    """The state of this thread."""

    @property
    def physical_mesh(self) -> _Mesh:
        """The mesh of the ``with mesh:`` block; an empty one outside of blocks."""
        return _CURRENT.meshes[2]


class _ThreadResources:
    """The state of each thread: `thread_resources.env.physical_mesh`."""

    env = _Environment()


thread_resources = _ThreadResources()

_publish(__name__)

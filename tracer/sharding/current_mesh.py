"""The current mesh of a thread: the functions that set it and read it. A PartitionSpec alone means this mesh."""

from __future__ import annotations

from ...hlo.library import set_module
from ..core import thread_state
from ..settings.context import current_context
from .devices import SEVERAL
from .mesh import CURRENT, EMPTY, AbstractMesh, Mesh


def get_abstract_mesh() -> AbstractMesh:
    """The current mesh without its devices; an empty one if none is current.

    >>> with hloom.set_mesh(hloom.make_mesh((1,), ("x",))):
    ...     print(hloom.sharding.get_abstract_mesh().axis_names)
    ('x',)
    """
    return CURRENT.meshes[0]


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` has made current; an empty one if there is none. ValueError while a function is traced:
    `get_abstract_mesh` works there.

    >>> with hloom.set_mesh(hloom.make_mesh((1,), ("x",))):
    ...     print(hloom.sharding.get_mesh().axis_names)
    ('x',)
    """
    if not thread_state().direct:
        raise ValueError(
            "`get_mesh` can only be used outside of `hloom.jit`. Maybe you want `hloom.sharding.get_abstract_mesh()`?"
        )
    return CURRENT.meshes[1]


def mesh_of_thread() -> Mesh | None:
    """The mesh over which arrays without a place are: the mesh of `set_mesh`, if it has several devices. Within it, an
    operation on arrays that are nowhere has its result on all devices."""
    mesh = CURRENT.meshes[1] if SEVERAL else EMPTY
    return mesh if mesh.size > 1 and thread_state().direct else None


def current_mesh() -> Mesh | AbstractMesh:
    """The mesh that completes a PartitionSpec: the mesh of `set_mesh`, of a ``with mesh:`` block, or an abstract one.

    Where `use_abstract_mesh` has given the axes of a mesh with devices other types, it is that mesh with these types.
    """
    abstract, mesh, block = CURRENT.meshes
    found = mesh if not mesh.empty else block
    if found.empty:
        return abstract
    if abstract.empty or (found.shape_tuple, found.axis_types) == (abstract.shape_tuple, abstract.axis_types):
        return found
    return with_devices(abstract, found) or abstract


def current_device_mesh(mesh: AbstractMesh) -> Mesh | None:
    """The devices of the current mesh, or of the mesh of an enclosing `shard_map`, in a mesh with the axes of `mesh`:
    in their order, if there are as many."""
    manual = current_context().manual_axes
    for found in (*CURRENT.meshes[1:], *([] if manual is None else [manual.mesh])):
        if not found.empty and (devices := with_devices(mesh, found)) is not None:
            return devices
    return None


def with_devices(mesh: AbstractMesh, found: Mesh) -> Mesh | None:
    """The devices of `found` in a mesh with the axes of `mesh`; None if there are more or fewer."""
    if found.size != mesh.size:
        return None
    return Mesh(found.devices.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


class set_mesh:  # JAX's name
    """Make a mesh current in this thread: at once and for good, or within a ``with`` block. None: no mesh.

    Functions that take shardings then take a PartitionSpec alone. ValueError while a function is traced.

    >>> mesh = hloom.make_mesh((1,), ("x",))
    >>> with hloom.set_mesh(mesh):
    ...     hloom.device_put(jnp.ones(2), hloom.P("x")).sharding.spec
    P('x',)
    """

    __slots__ = ("_before",)

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `hloom.sharding.Mesh`. Got {type(mesh)}")
        if not thread_state().direct:
            raise ValueError("`set_mesh` can only be used outside of `hloom.jit`.")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(
                f"mesh {mesh} contains manual axes which is not allowed when using `hloom.set_mesh`. Please use "
                "`hloom.shard_map` to enter into `Manual` mode instead."
            )
        self._before = before = CURRENT.meshes
        mesh = EMPTY if mesh is None else mesh
        CURRENT.meshes = (mesh.abstract_mesh, mesh, before[2])

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        CURRENT.meshes = self._before


class use_abstract_mesh:  # JAX's name
    """Within the block, in this thread, an abstract mesh is current.

    >>> with sharding.use_abstract_mesh(sharding.AbstractMesh((4,), ("x",))):
    ...     print(sharding.get_abstract_mesh().shape["x"])
    4
    """

    __slots__ = ("_before", "mesh")

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `hloom.sharding.AbstractMesh`. Got type: {type(mesh)}")
        self.mesh: AbstractMesh = mesh

    def __enter__(self) -> None:
        before = CURRENT.meshes
        if not before[0].empty and not self.mesh.empty and before[0].size != self.mesh.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {self.mesh} with "
                f"size={self.mesh.size} and prev mesh: {before[0]} with size={before[0].size}"
            )
        self._before = before
        CURRENT.meshes = (self.mesh, *before[1:])

    def __exit__(self, *_: object) -> None:
        CURRENT.meshes = self._before


set_module("sharding", use_abstract_mesh)

"""jax._src.sharding_impls."""

from ...sharding import AxisType as _AxisType
from ...sharding import NamedSharding as _NamedSharding
from ...sharding import PartitionSpec as _PartitionSpec
from ...sharding import get_abstract_mesh as _get_abstract_mesh

__all__ = ["canonicalize_sharding"]


def canonicalize_sharding(
    sharding: _NamedSharding | _PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> _NamedSharding | None:
    """The sharding on the mesh without devices; None for no sharding, and for one on an empty mesh.

    TypeError for any other object; ValueError for a PartitionSpec without a mesh, for another mesh than the current
    one, and for axes that are not explicit.
    """
    if sharding is None or (isinstance(sharding, _NamedSharding) and sharding.mesh.empty):
        return None
    if not isinstance(sharding, _NamedSharding | _PartitionSpec):
        raise TypeError(
            f"`out_sharding` argument of {api_name} only supports instances of `NamedSharding` or `PartitionSpec`. "
            f"Got {sharding} of type: {type(sharding)}"
        )
    mesh = _get_abstract_mesh()
    if isinstance(sharding, _PartitionSpec):
        if mesh.empty:
            raise ValueError(f"{api_name}: {sharding} needs a mesh: give a NamedSharding, or enter jax.set_mesh")
        sharding = _NamedSharding(mesh, sharding)
    else:
        own = sharding.mesh.abstract_mesh
        are_auto = own.are_all_axes_auto and mesh.are_all_axes_auto
        if check_mesh_consistency and not are_auto and not mesh.empty and own != mesh:
            raise ValueError(f"Context mesh {mesh} should match the mesh of sharding {own} passed to {api_name}.")
        sharding = _NamedSharding(own, sharding.spec)
    kinds = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types))
    for entry in sharding.spec:
        for axis in entry if isinstance(entry, tuple) else (entry,):
            if axis is not None and kinds[axis] is not _AxisType.Explicit:
                raise ValueError(
                    f"PartitionSpec passed to {api_name} cannot contain axis names that are of type Auto or Manual. "
                    f"Got {sharding.spec}"
                )
    return sharding

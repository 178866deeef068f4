"""Putting arrays on devices: `device_put`, `reshard`, `with_sharding_constraint`, and the shardings of jit.

Arguments are checked as in JAX. Devices of one process share its memory: putting an array on another device moves
nothing at first, and a part is copied when a program on its device first needs it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...hlo.errors import UnsupportedError
from ...hlo.timeline.spans import RECORDERS, Track, spanning
from ..arrays.array import Array, as_value, is_placed
from ..arrays.layouts import Format, Layout, Space
from ..arrays.operators import Value
from ..arrays.overlay import overlaid, storage_of
from ..aval import ShapedArray
from ..core import current_trace
from ..errors import DeletedArrayError
from ..settings.context import current_context
from ..trees import tree
from .calls import constrain, parts_become_terms
from .current_mesh import current_device_mesh, current_mesh, get_abstract_mesh, mesh_of_thread
from .devices import SEVERAL, CpuDevice
from .manual_axes import current_manual_axes
from .mesh import AbstractMesh, AxisType, Mesh
from .partition_spec import UNCONSTRAINED, PartitionSpec, axes_of
from .shardings import UNSPECIFIED, NamedSharding, Sharding, SingleDeviceSharding, whole_mesh
from .spmd import move

PLACES = (Sharding, CpuDevice, PartitionSpec, Format, Space)


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """x (a pytree) with all leaves as arrays, where `device` says: a device, a sharding, or a pytree of these, which is
    a prefix of x. With several processes each passes the same x, and its devices get their parts.

    src: accepted. donate (a bool, or a prefix of x of them): the given arrays are deleted. may_alias: False copies.

    >>> import hloom, numpy as np
    >>> hloom.device_put(np.ones(2), hloom.devices()[0]).device
    CpuDevice(id=0)
    """
    if RECORDERS:
        with spanning(Track.COPIES, "device_put"):
            return _device_put(x, device, donate, may_alias)
    return _device_put(x, device, donate, may_alias)


def _device_put(x: Any, device: Any, donate: Any, may_alias: Any) -> Any:
    _check_places(device)
    leaves, structure = tree.flatten(x)
    places = _spread("device_put device", device, x, len(leaves))
    donated = _spread("device_put donate", donate, x, len(leaves))
    aliases = _spread("device_put may_alias", may_alias, x, len(leaves))
    if any(d and a for d, a in zip(donated, aliases, strict=True)):
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    found = []
    for leaf, place, gives, alias in zip(leaves, places, donated, aliases, strict=True):
        value = as_value(leaf)
        sharding = completed(place, "device_put")
        new = value if sharding is None else placed(value, sharding, "device_put")
        if isinstance(value, Array) and (gives or alias is False):
            new = _moved(value, new, bool(gives))
        found.append(new)
    return tree.unflatten(structure, found)


def _check_places(device: Any) -> None:
    for place in tree.leaves(device):
        if not isinstance(place, PLACES):
            raise ValueError(
                "`hloom.device_put` only accepts `None`, `hloom.sharding.Sharding`, `hloom.Device`, `Format`, "
                f"`hloom.memory.Space` or a pytree of these values. Received invalid value: {place!r}"
            )
        if isinstance(place, PartitionSpec) and current_mesh().empty:
            raise ValueError("Please set a mesh via `hloom.set_mesh` if a PartitionSpec is passed to device_put")


def _moved(old: Array, new: Value, gives: bool) -> Value:
    """A copy of `old`, or all of it if it is given away, in the place of `new`."""
    assert isinstance(new, Array)
    if old.is_deleted():
        raise DeletedArrayError("device_put: the array has been deleted")
    if not gives:
        return new.__deepcopy__({})
    copy = new.with_aval(new.aval)
    old.delete()
    return copy


def _spread(what: str, prefix: Any, full: Any, count: int) -> list[Any]:
    """The entry of `prefix` for each leaf of `full`."""
    if prefix is None or isinstance(prefix, (*PLACES, bool)):
        return [prefix] * count
    try:
        return tree.broadcast_prefix(prefix, full, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(f"{what} specification must be a tree prefix of the corresponding value; {error}") from None


def placed(value: Value, sharding: Sharding, where: str) -> Value:
    """The same array, in a place. A traced value gets there when the program runs."""
    check_fits(sharding, value.aval.shape, where)
    if isinstance(value, Array) and not parts_become_terms(value.aval, sharding):
        return move(value, sharding)
    is_abstract = isinstance(getattr(sharding, "mesh", None), AbstractMesh)
    if isinstance(sharding, SingleDeviceSharding) or (is_abstract and not current_context().lowering_platforms):
        return value  # a program with several devices refuses to run on one of them; an exported one has its meshes
    stored = constrain(storage_of(value), sharding)
    return current_trace().with_weak_type(overlaid(stored, value.aval), value.aval.weak_type)


def asked_place(given: Any, what: str) -> NamedSharding | None:
    """The argument `out_sharding` of the function `what`, with the current mesh.

    TypeError unless it is a NamedSharding, a PartitionSpec or None. ValueError if there is no mesh, or another one.
    """
    if given is None:
        return None
    if not isinstance(given, NamedSharding | PartitionSpec):
        raise TypeError(
            f"`out_sharding` argument of {what} only supports instances of `NamedSharding` or `PartitionSpec`. Got "
            f"{given} of type: {type(given)}"
        )
    mesh = current_mesh()
    if isinstance(given, PartitionSpec):
        if mesh.empty:
            raise ValueError(
                f"{what}: Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
                f"NamedSharding instance or enter into a mesh context via `hloom.set_mesh`. Got {given}"
            )
        given = NamedSharding(mesh, given)
    place: NamedSharding = given
    if place.memory_kind not in (None, "device"):
        raise ValueError(f"{what}: sharding with memory_kind is not allowed. Got {place}")
    check_runs_here(place.mesh, what)
    sizes = [(m.axis_names, m.axis_sizes) for m in (mesh, place.mesh)]
    if not mesh.empty and sizes[0] != sizes[1]:
        raise ValueError(f"{what}: context mesh {mesh} should match the mesh of sharding {place.mesh}")
    return place


def check_same_reductions(out_sharding: Any, aval: ShapedArray, what: str) -> None:
    """ValueError unless the place is unreduced and reduced along the axes along which the operand of the function
    `what` is, which does not change that."""
    place = asked_place(out_sharding, what)
    assert place is not None, f"{what} without a place"
    own = None if aval.division is None else aval.division.spec
    for kind in ("unreduced", "reduced"):
        has: frozenset[Any] = getattr(own, kind, frozenset())
        wanted: frozenset[Any] = getattr(place.spec, kind)
        if has and has != wanted:
            raise ValueError(
                f"out_sharding passed to {what} must be {kind} over the same mesh axes as operand. Got out_sharding: "
                f"{place.spec} and operand type: {aval.str_short(True)}"
            )
        if wanted and not has:
            raise ValueError(f"out_sharding passed to `{what}` cannot contain {kind} axes. Got {place}")


def chosen_place(device: Any, out_sharding: Any, what: str) -> Sharding | None:
    """The place that the arguments `device` and `out_sharding` of the function `what` name."""
    if device is None:
        return None if out_sharding is None else asked_place(out_sharding, what)
    return completed(device, what)


def in_asked_place(value: Value, device: Any, out_sharding: Any, what: str) -> Value:
    """The result of the function `what`, in the place that its arguments `device` and `out_sharding` name; without
    them, on all devices of the mesh that `set_mesh` has set. Entries of a spec that say nothing may be more than the
    result has dimensions."""
    if device is None and out_sharding is None:
        mesh = mesh_of_thread() if SEVERAL else None
        if mesh is None or not isinstance(value, Array) or is_placed(value):
            return value
        return move(value, whole_mesh(mesh, value.aval.ndim))
    place = chosen_place(device, out_sharding, what)
    if isinstance(place, NamedSharding):
        place = _of_rank(place, value.aval.ndim, device is None)
    return value if place is None else placed(value, place, what)


def _of_rank(place: NamedSharding, rank: int, is_padded: bool) -> NamedSharding:
    """The sharding without entries for dimensions beyond `rank` that say nothing; `is_padded`: with one for each."""
    entries = list(place.spec.partitions)
    while len(entries) > rank and entries[-1] is None:
        entries.pop()
    if is_padded:
        entries += [None] * (rank - len(entries))
    return place if len(entries) == len(place.spec) else place.update(spec=place.spec.update(partitions=entries))


def of_type(value: Value, aval: ShapedArray) -> Value:
    """The value, divided by the Explicit axes as a type says. As it is where the mesh's devices are not known."""
    if value.aval.division is aval.division:
        return value
    wanted = aval.division
    if wanted is None:
        wanted = NamedSharding(value.aval.division.mesh, PartitionSpec(*[None] * aval.ndim))
    mesh = current_device_mesh(wanted.mesh)
    if mesh is None and isinstance(value, Array) and isinstance(value.sharding, NamedSharding):
        own = value.sharding.mesh
        mesh = own if isinstance(own, Mesh) and own.abstract_mesh == wanted.mesh else None
    return value if mesh is None else placed(value, wanted.update(mesh=mesh), "the type")


def with_sums(value: Value) -> Value:
    """The value with its terms added, if its type has unreduced axes; otherwise the value itself."""
    division = value.aval.division
    if division is None or not division.spec.unreduced:
        return value
    return of_type(value, value.aval.divided(division.update(spec=division.spec.update(unreduced=set()))))


def check_explicit(sharding: NamedSharding, what: str) -> None:
    """ValueError if the sharding names axes of other types than Explicit."""
    others = [a for a in sharding.spec.axes() if sharding.mesh.name_to_type[a] is not AxisType.Explicit]
    if others:
        raise ValueError(
            f"PartitionSpec passed to {what} cannot contain axis names that are of type Auto or Manual. Got "
            f"PartitionSpec: {sharding.spec} with axis names: {others} in mesh {sharding.mesh}"
        )


def beside(value: Array, other: Value) -> Array:
    """An array that was computed from `other` with NumPy, on all devices of the mesh on which that is."""
    place = other.sharding if is_placed(other) else None
    return move(value, NamedSharding(place.mesh, PartitionSpec())) if isinstance(place, NamedSharding) else value


@lru_cache(maxsize=256)
def check_fits(sharding: Sharding, shape: tuple[int, ...], where: str) -> None:
    """ValueError, which begins with `where`, if an array of `shape` cannot be sharded so."""
    try:
        sharding.check_compatible_aval(shape)
        sharding.shard_shape(shape)
    except ValueError as error:
        raise type(error)(f"{where}: {error}") from None


def completed(given: Any, where: str) -> Sharding | None:
    """A device, a sharding, a layout with one, a memory, or a PartitionSpec of the current mesh, as a sharding."""
    if given is None:
        return None
    if isinstance(given, Sharding):
        mesh = getattr(given, "mesh", None)
        check_runs_here(mesh, where)
        if isinstance(mesh, AbstractMesh) and (found := current_device_mesh(mesh)) is not None:
            return given.update(mesh=found)  # type: ignore[attr-defined, no-any-return]
        return given
    if isinstance(given, PartitionSpec):
        return completed(NamedSharding(current_mesh(), given), where)
    if isinstance(given, Format):
        check_layout(given.layout, where)
        return completed(given.sharding, where)
    if isinstance(given, Space):
        return None
    return SingleDeviceSharding(given)


def check_runs_here(mesh: Mesh | AbstractMesh | None, where: str) -> None:
    """UnsupportedError for a mesh of several devices that says none, unless a function is exported."""
    if isinstance(mesh, AbstractMesh) and mesh.size > 1 and current_device_mesh(mesh) is None:
        if current_context().lowering_platforms:
            return
        raise UnsupportedError(
            f"{where}: {mesh} has no devices: make a mesh with devices of its axes current with hloom.set_mesh, or "
            "give one that has devices"
        )


def check_layout(layout: Layout | None, where: str) -> None:
    """UnsupportedError for a layout other than row-major: at the borders of programs all arrays are row-major."""
    if layout is not None and not (layout.is_row_major and not layout.tiling):
        raise UnsupportedError(
            f"{where}: arrays of users are dense and row-major; {layout} is possible inside of programs only "
            "(hloom.config.hloom_target)"
        )


# ---- while a function is traced


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """x (a pytree) with the shardings that the compiler must give its arrays inside of jit. `shardings` is a prefix of
    x. Outside of jit arrays are put there. The values do not change.

    ValueError if a sharding does not fit, or names an axis of the mesh that is not Auto: `hloom.reshard` is for those.

    >>> here = hloom.sharding.SingleDeviceSharding(hloom.devices()[0])
    >>> hloom.jit(lambda x: lax.with_sharding_constraint(x + 1, here))(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    leaves, structure = tree.flatten(x)
    entries = _spread("with_sharding_constraint shardings", shardings, x, len(leaves))
    for entry in entries:
        if entry is None:
            raise ValueError(
                "One of with_sharding_constraint arguments got sharding None which is not allowed: leave the array "
                "out, or give hloom.P() for an array that all devices have"
            )
        check_spec_has_mesh(entry, "with_sharding_constraint", "shardings")
    found = []
    for leaf, entry in zip(leaves, entries, strict=True):
        value = as_value(leaf)
        sharding = None if entry is UNSPECIFIED else completed(entry, "with_sharding_constraint")
        if isinstance(sharding, NamedSharding):
            manual = current_manual_axes()
            taken = [a for a in sharding.spec.axes() if manual is not None and manual.owns((a,))]
            if taken:
                raise ValueError(
                    f"with_sharding_constraint: {sharding.spec} contains a manual axes {set(taken)} of mesh "
                    f"{sharding.mesh}: within shard_map each device has its own part along these"
                )
            if get_abstract_mesh().are_all_axes_explicit:
                _assert_divided(value.aval, sharding)
                found.append(value)
                continue
            others = [a for a in sharding.spec.axes() if sharding.mesh.name_to_type[a] is not AxisType.Auto]
            if others:
                raise ValueError(
                    "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the "
                    f"mesh. Got spec={sharding.spec} and mesh={sharding.mesh}. You probably meant to use `reshard` API?"
                )
        found.append(value if sharding is None else placed(value, sharding, "with_sharding_constraint"))
    return tree.unflatten(structure, found)


def _assert_divided(aval: ShapedArray, sharding: NamedSharding) -> None:
    """AssertionError unless a type is divided as `sharding` says: where all axes are Explicit, types say that."""
    own = aval.sharding.spec.partitions
    wanted = sharding.spec.partitions
    wanted = (*wanted, *[None] * (aval.ndim - len(wanted)))
    if any(e is not UNCONSTRAINED and axes_of(e) != axes_of(o) for e, o in zip(wanted, own, strict=True)):
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
            f"sharding: {PartitionSpec(*own)} did not match the sharding provided: {PartitionSpec(*wanted)}. Please "
            "use `hloom.reshard` to shard your input to the sharding you want."
        )


def check_spec_has_mesh(entry: Any, what: str, argument: str) -> None:
    if isinstance(entry, PartitionSpec) and current_mesh().empty:
        raise RuntimeError(
            f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {argument}. You can "
            f"define a context mesh via `hloom.set_mesh(mesh)`. Alternatively, provide `Sharding`s to {argument} and "
            "then the mesh context manager is not required."
        )


def reshard(xs: Any, out_shardings: Any) -> Any:
    """xs (a pytree) with other shardings; `out_shardings` is a prefix tree of it. The values stay.

    ValueError if a sharding does not fit, or names an axis of the mesh that is not Explicit.

    >>> mesh = hloom.make_mesh((1,), ("x",), axis_types=(hloom.sharding.AxisType.Explicit,))
    >>> with hloom.set_mesh(mesh):
    ...     hloom.reshard(jnp.ones(2), hloom.P("x")).sharding.spec
    P('x',)
    """
    leaves, structure = tree.flatten(xs)
    found = []
    for leaf, entry in zip(leaves, _spread("reshard out_shardings", out_shardings, xs, len(leaves)), strict=True):
        if entry is None:
            raise ValueError("reshard: an out_sharding must be a NamedSharding or a PartitionSpec, not None")
        check_spec_has_mesh(entry, "reshard", "out_shardings")
        sharding = completed(entry, "reshard")
        if isinstance(sharding, NamedSharding):
            check_explicit(sharding, "reshard")
            sharding = _of_rank(sharding, as_value(leaf).aval.ndim, True)
        found.append(as_value(leaf) if sharding is None else placed(as_value(leaf), sharding, "reshard"))
    return tree.unflatten(structure, found)

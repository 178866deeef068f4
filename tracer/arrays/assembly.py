"""Arrays made from their parts on devices, and the list of all arrays."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..aval import ShapedArray
from ..dtypes import canonical_dtype
from ..errors import OperandError
from ..sharding.devices import CpuDevice, devices
from ..sharding.placement import check_fits, completed
from ..sharding.shardings import Index, Sharding
from ..trees import tree
from .array import Array, as_value


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Array:
    """The array of `shape` with parts that `data_callback(index)` returns for each device; `index` is a tuple of
    slices. The callback is called once for each part on devices of this process.

    dtype: only needed where no device of the sharding is of this process.

    >>> import hloom, numpy as np
    >>> x = np.arange(4, dtype=np.float32)
    >>> sharding = hloom.NamedSharding(hloom.make_mesh((1,), ("d",)), hloom.P("d"))
    >>> hloom.make_array_from_callback((4,), sharding, lambda index: x[index])
    Array([0., 1., 2., 3.], dtype=float32)
    """
    what = "make_array_from_callback"
    whole = tuple(shape)
    place = _place(sharding, whole, what)
    made: dict[Any, Array] = {}

    def part(index: Index) -> Array:
        key = tuple([(s.start, s.stop) for s in index])
        if key not in made:
            data = data_callback(index)
            value = as_value(np.asarray(data) if isinstance(data, list | tuple) else data)
            assert isinstance(value, Array), f"{what}: data_callback returned a traced value"
            if dtype is not None and value.aval.dtype != canonical_dtype(dtype):
                raise ValueError(
                    f"{what}: data_callback returned {value.aval.str_short()} where dtype is {np.dtype(dtype).name}"
                )
            made[key] = value
        return made[key]

    parts = {d: part(i) for d, i in place.addressable_devices_indices_map(whole).items()}
    return _of_parts(whole, place, parts, what, dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """The array of `shape` with its parts in `arrays`: one on each device of this process, in any order.

    >>> part = jnp.ones(2)
    >>> hloom.make_array_from_single_device_arrays((2,), part.sharding, [part])
    Array([1., 1.], dtype=float32)
    """
    what = "make_array_from_single_device_arrays"
    whole = tuple(shape)
    place = _place(sharding, whole, what)
    if isinstance(arrays, Array) or not isinstance(arrays, Sequence):
        raise TypeError(f"hloom.{what} `arrays` argument must be a Sequence (list or tuple), but got {type(arrays)}.")
    wanted = place.addressable_assignment
    if len(arrays) != len(wanted):
        raise ValueError(
            f"Expected {len(wanted)} per-device arrays (this is how many devices are addressable by the sharding), but "
            f"got {len(arrays)}"
        )
    parts: dict[CpuDevice, Array] = {}
    for array in arrays:
        if not isinstance(array, Array):
            raise TypeError(
                f"When creating Arrays from {what} the inputs must be of type hloom.Array, got {type(array)}"
            )
        if dtype is not None and array.aval.dtype != canonical_dtype(dtype):
            raise ValueError(
                f"If `dtype` is provided to `hloom.{what}`, it must match the dtype of the addressable shards. Got "
                f"dtype={np.dtype(dtype).name} and shard dtype={array.aval.dtype.name}"
            )
        if len(array.devices()) != 1:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one shard each. An argument "
                f"array had {len(array.addressable_shards)} shard(s)."
            )
        (device,) = array.devices()
        if device in parts or device not in wanted:
            raise ValueError(
                f"{what}: each of the devices {wanted} must hold one of the arrays, but the arrays are on "
                f"{[next(iter(a.devices())) for a in arrays]}: put each on its device with hloom.device_put"
            )
        parts[device] = array
    return _of_parts(whole, place, parts, what, dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """The arrays (a pytree) made from this process's `local_data`: the parts on its devices, in the order of the array.

    global_shape: the shape of the whole, or a tree of shapes; None (also for single dimensions): as follows from the
      sharding. `local_data` of that very shape is the whole, and this process takes its parts of it.

    >>> import hloom, numpy as np, hloom.numpy as jnp
    >>> sharding = jnp.ones(2).sharding
    >>> hloom.make_array_from_process_local_data(sharding, np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    what = "make_array_from_process_local_data"
    leaves, structure = tree.flatten(local_data)
    is_shape = isinstance(global_shape, tuple | list) and all(n is None or isinstance(n, int) for n in global_shape)
    given = [global_shape] * len(leaves) if global_shape is None or is_shape else _shapes(global_shape, structure)
    is_one = isinstance(sharding, Sharding)
    places = [sharding] * len(leaves) if is_one else tree.broadcast_prefix(sharding, local_data)
    found = [_from_local(leaf, p, g, what) for leaf, p, g in zip(leaves, places, given, strict=True)]
    return tree.unflatten(structure, found)


def _shapes(shapes: Any, structure: Any) -> list[Any]:
    def is_shape(x: Any) -> bool:
        return isinstance(x, tuple | list) and all(n is None or isinstance(n, int) for n in x)

    leaves = tree.leaves(shapes, is_leaf=is_shape)
    if len(leaves) != structure.num_leaves:
        raise ValueError(f"make_array_from_process_local_data: {len(leaves)} shapes for {structure.num_leaves} arrays")
    return leaves


def _from_local(leaf: Any, sharding: Any, given: Any, what: str) -> Array:
    local = np.asarray(leaf)
    full = list(given) if given is not None else [None] * local.ndim
    if len(full) != local.ndim:
        raise ValueError(f"{what}: global_shape {given} for an array of {local.ndim} dimensions")
    place = completed(sharding, what)
    if place is None:
        raise TypeError(f"{what}: a sharding is needed, not {sharding!r}")
    parts = place.parts(local.ndim)
    own = _own_parts(place, parts)
    shape = []
    for d, (wanted, size) in enumerate(zip(full, local.shape, strict=True)):
        whole = wanted if wanted is not None else size * parts[d] // len(own[d]) if len(own[d]) else size
        expected = whole * len(own[d]) // parts[d]
        if size not in (whole, expected):
            raise ValueError(
                f"{what}: dimension {d} has size {size} in this process, but it must be {whole}, that of the whole "
                f"array, or {expected}, that of the parts on devices of this process"
            )
        shape.append(whole)
    check_fits(place, tuple(shape), what)

    def cut(index: Index) -> np.ndarray[Any, Any]:
        found = []
        for d, s in enumerate(index):
            if s.start is None or local.shape[d] == shape[d]:
                found.append(s)
                continue
            step = shape[d] // parts[d]
            first = own[d].index(s.start // step) * step
            found.append(slice(first, first + step))
        return local[tuple(found)]

    return make_array_from_callback(tuple(shape), place, cut)


def _own_parts(place: Sharding, parts: Sequence[int]) -> list[list[int]]:
    """The parts of each dimension that devices of this process hold."""
    found: list[set[int]] = [set() for _ in parts]
    for index in place.addressable_devices_indices_map(tuple(parts)).values():
        for d, s in enumerate(index):
            found[d].add(s.start or 0)
    return [sorted(f) for f in found]


def _place(sharding: Any, shape: tuple[int, ...], what: str) -> Sharding:
    place = completed(sharding, what)
    if place is None:
        raise TypeError(f"{what}: a sharding is needed, not {sharding!r}")
    check_fits(place, shape, what)
    return place


def _of_parts(
    shape: tuple[int, ...], place: Sharding, parts: Mapping[CpuDevice, Array], what: str, dtype: Any
) -> Array:
    """The array with one part for each device of this process."""
    values = [parts[d] for d in place.addressable_assignment]
    if not values and dtype is None:
        raise ValueError(f"{what}: no device of {place} is of this process: say `dtype`")
    found = values[0].aval.dtype if values else canonical_dtype(dtype)
    whole, wanted = ShapedArray(shape, found), place.shard_shape(shape)
    for value in values:
        if value.aval.shape != wanted:
            raise OperandError(
                f"Expected shard shape {wanted} doesn't match the single device array shape {value.aval.shape}. Shape "
                f"of Array is {whole.str_short()} with sharding {place}"
            )
        if value.aval.dtype != found:
            raise OperandError(
                f"Input buffers to `Array` must have matching dtypes. Got {value.aval.dtype.name}, expected "
                f"{found.name} for {what}"
            )
    if len(values) == 1 and place.num_devices == 1:
        return values[0].with_aval(whole, place)
    return Array.from_shards(whole, [v._buffer for v in values], place)


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that exist in this process and are not deleted. It looks through all objects: for debugging.

    >>> x = jnp.ones(3)
    >>> any(y is x for y in hloom.live_arrays())
    True
    """
    devices(platform)
    # `type`, since `isinstance` reads the class of a weak proxy's object, which may be gone
    return [x for x in gc.get_objects() if issubclass(type(x), Array) and not x.is_deleted()]


def copy_to_host_async(x: Any) -> Any:
    """x (a pytree): its arrays are in the memory of the process already.

    >>> hloom.copy_to_host_async([jnp.ones(2)])
    [Array([1., 1.], dtype=float32)]
    """
    for leaf in tree.leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x

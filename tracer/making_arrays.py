"""Arrays made from their parts on devices, and the list of all arrays. There is one device: the part is the whole."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import tree
from .array import Array, DeletedArray, as_value
from .aval import ShapedArray
from .devices import devices
from .dtypes import canonical_dtype
from .errors import OperandError
from .operators import Value
from .placing import completed, placed
from .source import user_line

__all__ = [
    "copy_to_host_async",
    "live_arrays",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Value:
    """The array of `shape` whose part on each device `data_callback(index)` returns; `index` is a tuple of slices. It
    is called once, for the whole.

    >>> import hloom, numpy as np
    >>> x = np.arange(4, dtype=np.float32)
    >>> sharding = hloom.NamedSharding(hloom.make_mesh((1,), ("d",)), hloom.P("d"))
    >>> hloom.make_array_from_callback((4,), sharding, lambda index: x[index])
    Array([0., 1., 2., 3.], dtype=float32)
    """
    what = "make_array_from_callback"
    place = _place(sharding, what)
    whole = tuple(shape)
    (index,) = place.devices_indices_map(whole).values()
    data = data_callback(index)
    value = as_value(np.asarray(data) if isinstance(data, list | tuple) else data)
    if dtype is not None and value.aval.dtype != canonical_dtype(dtype):
        raise ValueError(
            f"{what}: data_callback returned {value.aval.str_short()} where dtype is {np.dtype(dtype).name}\n"
            f"  at {user_line()}"
        )
    return placed(_of_shape(value, whole, what), place, what)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Value:
    """The array of `shape` whose part on each device is in `arrays`: a sequence with one array, the whole.

    >>> import hloom, hloom.numpy as jnp
    >>> part = jnp.ones(2)
    >>> hloom.make_array_from_single_device_arrays((2,), part.sharding, [part])
    Array([1., 1.], dtype=float32)
    """
    what = "make_array_from_single_device_arrays"
    place = _place(sharding, what)
    if isinstance(arrays, Array) or not isinstance(arrays, Sequence):
        raise TypeError(f"hloom.{what} `arrays` argument must be a Sequence (list or tuple), but got {type(arrays)}.")
    if len(arrays) != 1:
        raise ValueError(f"{what}: there is one device, so `arrays` has one array, not {len(arrays)}")
    if not isinstance(arrays[0], Array):
        raise TypeError(
            f"When creating Arrays from {what} the inputs must be of type hloom.Array, got {type(arrays[0])}"
        )
    if dtype is not None and arrays[0].aval.dtype != canonical_dtype(dtype):
        raise ValueError(
            f"If `dtype` is provided to {what}, it must match the dtype of the addressable shards. Got dtype="
            f"{np.dtype(dtype).name} and shard dtype={arrays[0].aval.dtype.name}\n  at {user_line()}"
        )
    return placed(_of_shape(arrays[0], tuple(shape), what), place, what)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """The arrays (a pytree) of which this process has `local_data`: as there is one process, all of it.

    >>> import hloom, numpy as np, hloom.numpy as jnp
    >>> sharding = jnp.ones(2).sharding
    >>> hloom.make_array_from_process_local_data(sharding, np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    what = "make_array_from_process_local_data"
    place = _place(sharding, what)
    leaves, structure = tree.flatten(local_data)
    found = []
    for leaf in leaves:
        value = as_value(leaf)
        if global_shape is not None and tree.leaves(global_shape) and len(leaves) == 1:
            wanted = tuple(global_shape)
            full = tuple([s if w is None else w for w, s in zip(wanted, value.aval.shape, strict=False)])
            value = _of_shape(value, full, what)
        found.append(placed(value, place, what))
    return tree.unflatten(structure, found)


def _place(sharding: Any, what: str) -> Any:
    place = completed(sharding, what)
    if place is None:
        raise TypeError(f"{what}: a sharding is needed, not {sharding!r}")
    return place


def _of_shape(value: Value, shape: tuple[int, ...], what: str) -> Value:
    if value.aval.shape != shape:
        wanted = ShapedArray(shape, value.aval.dtype).str_short()
        raise OperandError(
            f"{what}: the part of the one device must be the whole, {wanted}, not {value.aval.str_short()}\n"
            f"  at {user_line()}",
            "one_device",
        )
    return value


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that exist in this process and are not deleted. It looks through all objects: for debugging.

    >>> import hloom, hloom.numpy as jnp
    >>> x = jnp.ones(3)
    >>> any(y is x for y in hloom.live_arrays())
    True
    """
    devices(platform)
    return [x for x in gc.get_objects() if isinstance(x, Array) and not isinstance(x, DeletedArray)]


def copy_to_host_async(x: Any) -> Any:
    """x (a pytree): its arrays are in the memory of the process already.

    >>> import hloom, hloom.numpy as jnp
    >>> hloom.copy_to_host_async([jnp.ones(2)])
    [Array([1., 1.], dtype=float32)]
    """
    for leaf in tree.leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x

"""`hloom.experimental.multihost_utils`: values of all processes, with names of jax.experimental.multihost_utils."""

import zlib as _zlib
from typing import Any as _Any

import numpy as _np

from ..namespaces import publish as _publish
from ..tracer.arrays.array import Array as _Array
from ..tracer.arrays.assembly import make_array_from_callback as _make_array_from_callback
from ..tracer.sharding.devices import devices as _devices
from ..tracer.sharding.devices import process_count as _process_count
from ..tracer.sharding.devices import process_index as _process_index
from ..tracer.sharding.mesh import Mesh as _Mesh
from ..tracer.sharding.partition_spec import PartitionSpec as _PartitionSpec
from ..tracer.sharding.placement import device_put as _device_put
from ..tracer.sharding.shardings import NamedSharding as _NamedSharding
from ..tracer.trees import tree as _tree

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def _of_all(x: _np.ndarray[_Any, _Any]) -> _np.ndarray[_Any, _Any]:
    """The arrays of all processes, stacked. All must call it, with arrays of one type."""
    if _process_count() == 1:
        return x[None]
    first = [next(d for d in _devices() if d.process_index == k) for k in range(_process_count())]
    mesh = _Mesh(_np.array(first, dtype=object), ("processes",))
    shape = (len(first), *x.shape)
    data = x.view(_np.uint8).reshape(x.shape) if x.dtype == bool else x
    parts = _make_array_from_callback(shape, _NamedSharding(mesh, _PartitionSpec("processes")), lambda _: data[None])
    found = _np.asarray(_device_put(parts, _NamedSharding(mesh, _PartitionSpec())))
    return found.astype(bool) if x.dtype == bool else found


def broadcast_one_to_all(in_tree: _Any, is_source: bool | None = None) -> _Any:
    """The arrays (a pytree) of the first process, or of the process with a true `is_source`, as NumPy arrays.

    All processes must call it, with arrays of the same types. ValueError if not just one is the source.

    >>> int(multihost_utils.broadcast_one_to_all(3))
    3
    """
    chosen = _process_index() == 0 if is_source is None else bool(is_source)
    if _process_count() == 1:
        return _tree.map(_np.asarray, in_tree)
    sources = _np.flatnonzero(_of_all(_np.asarray(chosen, _np.int32)))
    if len(sources) != 1:
        raise ValueError(f"broadcast_one_to_all: one process must be the source, but {len(sources)} say they are")
    return _tree.map(lambda x: _of_all(_np.asarray(x))[int(sources[0])], in_tree)


def process_allgather(in_tree: _Any, tiled: bool = False) -> _Any:
    """The arrays of all processes, as NumPy arrays, one behind the other: in a new first dimension, or with `tiled` in
    the first that there is. An array that is on devices of several processes becomes the whole array.

    All processes must call it, with arrays of the same types.

    >>> import numpy as np
    >>> from hloom.experimental import multihost_utils
    >>> multihost_utils.process_allgather(np.ones(2)).shape
    (1, 2)
    """

    def gathered(x: _Any) -> _Any:
        if isinstance(x, _Array) and not x.is_fully_addressable:
            place = x.sharding
            mesh = getattr(place, "mesh", None)
            if not isinstance(mesh, _Mesh):
                mesh = _Mesh(_np.array(place.device_assignment, dtype=object), ("devices",))
            return _np.asarray(_device_put(x, _NamedSharding(mesh, _PartitionSpec())))
        found = _of_all(_np.asarray(x))
        return found.reshape(-1, *found.shape[2:]) if tiled and found.ndim > 1 else found

    return _tree.map(gathered, in_tree)


def assert_equal(in_tree: _Any, fail_message: str = "") -> None:
    """AssertionError unless all processes have the same arrays; TypeError for anything but arrays.

    >>> multihost_utils.assert_equal({"seed": 3})
    """
    leaves = [_np.asarray(leaf) for leaf in _tree.leaves(in_tree)]
    for leaf in leaves:
        if leaf.dtype == object:
            raise TypeError(f"assert_equal: {leaf!r} is no array")
    if _process_count() == 1:
        return
    text = [f"{x.dtype}{x.shape}".encode() + _np.ascontiguousarray(x).tobytes() for x in leaves]
    prints = _of_all(_np.array([len(text), *_halves(b"".join(text))], _np.int32))
    if (prints != prints[0]).any():
        others = [k for k, row in enumerate(prints) if (row != prints[0]).any()]
        raise AssertionError(
            f"{fail_message} Expected: the arrays of process 0; they differ in processes {others}.".strip()
        )


def _halves(text: bytes) -> list[int]:
    """Two numbers that tell texts apart, each of an int32."""
    return [_checksum(text, start) & 0x7FFFFFFF for start in (0, 1)]


def _checksum(text: bytes, start: int) -> int:
    """A checksum; `start`: of several, which."""
    return _zlib.crc32(text, start) if start else _zlib.adler32(text)


def sync_global_devices(name: str) -> None:
    """Wait until all processes are here. AssertionError if they are here under different names.

    >>> multihost_utils.sync_global_devices("before saving")
    """
    number = _np.uint32(_zlib.crc32(name.encode()))
    assert_equal(number, f"sync_global_devices name mismatch ('{name}').")


def host_local_array_to_global_array(local_inputs: _Any, global_mesh: _Any, pspecs: _Any) -> _Any:
    """Arrays over `global_mesh` with `pspecs`, a prefix tree of PartitionSpecs, from the parts (a pytree) of each
    process.

    >>> import hloom, numpy as np
    >>> from hloom.experimental import multihost_utils
    >>> mesh = hloom.make_mesh((1,), ("x",))
    >>> multihost_utils.host_local_array_to_global_array(np.ones(2, np.float32), mesh, hloom.P("x"))
    Array([1., 1.], dtype=float32)
    """
    leaves, structure = _tree.flatten(local_inputs)
    specs = _specs(pspecs, local_inputs, len(leaves))
    found = []
    for leaf, spec in zip(leaves, specs, strict=True):
        local = _np.asarray(leaf)
        ours = _NamedSharding(global_mesh.local_mesh, spec)
        theirs = _NamedSharding(global_mesh, spec)
        counts = zip(local.shape, theirs.parts(local.ndim), ours.parts(local.ndim), strict=True)
        shape = tuple([n * whole // own for n, whole, own in counts])
        found.append(_make_array_from_callback(shape, theirs, _cutting(local, shape, theirs)))
    return _tree.unflatten(structure, found)


def _cutting(local: _np.ndarray[_Any, _Any], shape: tuple[int, ...], place: _Any) -> _Any:
    """A function from the index of a part of the whole to that part, cut from this process's `local`."""
    first = [min((i[d].start or 0) for i in place.addressable_devices_indices_map(shape).values())
             for d in range(len(shape))]  # fmt: skip

    def cut(index: _Any) -> _Any:
        own = [s if s.start is None else slice(s.start - f, s.stop - f) for s, f in zip(index, first, strict=True)]
        return local[tuple(own)]

    return cut


def global_array_to_host_local_array(global_inputs: _Any, global_mesh: _Any, pspecs: _Any) -> _Any:
    """The part of each array (of a pytree) that this process has, as arrays over the part of the mesh that is here.

    >>> mesh = hloom.make_mesh((1,), ("x",))
    >>> multihost_utils.global_array_to_host_local_array(jnp.ones(2), mesh, hloom.P("x"))
    Array([1., 1.], dtype=float32)
    """
    leaves, structure = _tree.flatten(global_inputs)
    found = []
    for leaf, spec in zip(leaves, _specs(pspecs, global_inputs, len(leaves)), strict=True):
        place = _NamedSharding(global_mesh, spec)
        x = _device_put(leaf, place)
        ours = _NamedSharding(global_mesh.local_mesh, spec)
        counts = zip(x.shape, place.parts(x.ndim), ours.parts(x.ndim), strict=True)
        shape = tuple([n // whole * own for n, whole, own in counts])
        found.append(type(x).from_shards(x.aval.update(shape=shape), x._shards, ours))
    return _tree.unflatten(structure, found)


def _specs(pspecs: _Any, full: _Any, count: int) -> list[_Any]:
    return [pspecs] * count if isinstance(pspecs, _PartitionSpec) else _tree.broadcast_prefix(pspecs, full)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes of a program that will be stopped have reached the step at which they should all save
    their state. False for one process; RuntimeError in several, as nothing tells them.

    >>> from hloom.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(3)
    False
    """
    if _process_count() > 1:
        raise RuntimeError("Preemption sync manager has not been initialized: hloom has none")
    return False


_publish(__name__, examples=("from hloom.experimental import multihost_utils",))

"""Arrays in files of tensorstore, a package of its own, which is imported when an array is written or read.

A *spec* is tensorstore's description of a store: a dictionary with the driver (the format), the place, and metadata.
Each part of an array that is on one device is written, and read, by itself.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from math import isqrt, prod
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.arrays.array import Array
from ...tracer.arrays.assembly import make_array_from_single_device_arrays
from ...tracer.arrays.layouts import Format
from ...tracer.dtypes import canonical_dtype
from ...tracer.sharding.devices import process_count
from ...tracer.sharding.placement import device_put
from ...tracer.sharding.shardings import Sharding, SingleDeviceSharding

__all__ = [
    "async_deserialize",
    "async_serialize",
    "estimate_read_memory_footprint",
    "get_tensorstore_spec",
    "is_tensorstore_spec_leaf",
    "merge_nested_ts_specs",
]

Spec = dict[str, Any]

_FILE_SIZE = 2 * 1024**3
"""About so many bytes are in one chunk, which is one file, at most."""
_ELEMENTS = 100_000_000
"""So many elements are in a chunk where the spec does not say it."""
_CACHE = {"total_bytes_limit": 10_000_000_000}


def tensorstore() -> Any:
    """The package."""
    try:
        return import_module("tensorstore")
    except ImportError as error:
        raise ImportError("writing and reading arrays needs tensorstore: pip install tensorstore") from error


@cache
def default_context() -> Any:
    """How many operations run at once, and how much memory they use."""
    limits: Spec = {name: {"limit": 128} for name in ("file_io_concurrency", "data_copy_concurrency")}
    return tensorstore().Context({**limits, "cache_pool": _CACHE, "cache_pool#remote": _CACHE})


@cache
def _default_layout() -> Any:
    ts = tensorstore()
    return ts.ChunkLayout(chunk=ts.ChunkLayout.Grid(elements=_ELEMENTS))


class LimitInFlightBytes:
    """Lets coroutines use so many bytes together; each asks before it reads."""

    def __init__(self, host_memory_bytes_limit: int) -> None:
        self._most = self._free = host_memory_bytes_limit
        self._changed = asyncio.Condition()

    async def wait_for_bytes(self, requested_bytes: int) -> None:
        """Return when so many bytes are free. If there are not so many in all, the limit is raised."""
        async with self._changed:
            if requested_bytes > self._most:
                self._free += requested_bytes - self._most
                self._most = requested_bytes
            await self._changed.wait_for(lambda: self._free >= requested_bytes)
            self._free -= requested_bytes

    async def release_bytes(self, requested_bytes: int) -> None:
        """Give so many bytes back."""
        async with self._changed:
            self._free += requested_bytes
            self._changed.notify_all()


# ---- specs


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Whether a node of a tree is a spec, or None.

    >>> from hloom.experimental.array_serialization.tensorstore_impl import is_tensorstore_spec_leaf
    >>> is_tensorstore_spec_leaf({"driver": "zarr3"}), is_tensorstore_spec_leaf({"w": {"driver": "zarr3"}})
    (True, False)
    """
    return leaf is None or (isinstance(leaf, dict) and ("driver" in leaf or "kvstore" in leaf))


def merge_nested_ts_specs(dict1: Spec, dict2: Spec | None) -> Spec:
    """A spec with the entries of another one, also of its "kvstore", in place of its own.

    >>> from hloom.experimental.array_serialization.tensorstore_impl import merge_nested_ts_specs
    >>> merge_nested_ts_specs({"driver": "zarr3", "kvstore": {"driver": "file"}}, {"kvstore": {"path": "/tmp/a"}})
    {'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': '/tmp/a'}}
    """
    if dict2 is None:
        return dict1
    return {**dict1, **dict2, "kvstore": {**dict1.get("kvstore", {}), **dict2.get("kvstore", {})}}


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    ocdbt: bool = True,
    process_idx: int | None = None,
    arr: Any = None,
    driver: str = "zarr3",
) -> Spec:
    """The spec of an array's store.

    Args:
      ckpt_path: a folder, or gs://BUCKET/PATH, or s3://BUCKET/PATH; absolute with `ocdbt`.
      ocdbt: one database in the folder above holds this array and others; its name there is the last part of the path.
      process_idx: the store of one process: its path has a folder process_N in it.
      arr: an array whose type the spec gets.
      driver: the format: "zarr3" or "zarr".

    >>> from hloom.experimental.array_serialization.tensorstore_impl import get_tensorstore_spec
    >>> get_tensorstore_spec("/tmp/a", ocdbt=False)
    {'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': '/tmp/a'}}
    """
    path = re.sub(r"^(gs|s3):/", r"\1://", os.path.normpath(str(ckpt_path)))
    if process_idx is not None:
        folder, name = os.path.split(path)
        path = os.path.join(folder, f"process_{process_idx}", name)
    whole, key = path, ""
    if ocdbt:
        path, key = os.path.split(path)
    remote = re.fullmatch(r"(gs|s3)://([^/]*)/(.*)", path, re.DOTALL)
    if remote is not None:
        scheme, bucket, inner = remote.groups()
        place: Spec = {"driver": {"gs": "gcs"}.get(scheme, scheme), "bucket": bucket, "path": inner}
    elif whole.startswith(("gs://", "s3://")):
        raise ValueError(f"The path needs the bucket, a folder and the name of the array. Got: {whole}")
    else:
        place = {"driver": "file", "path": path}
        if ocdbt and not os.path.isabs(path):
            raise ValueError(f"Checkpoint path should be absolute. Got {path}")
    spec: Spec = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": place, "path": key} if ocdbt else place}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _metadata(arr: Any, driver: str) -> Spec:
    """The type of an array, and how it is divided into chunks: so that each device's part consists of whole ones."""
    shape = tuple(arr.shape)
    part = arr.sharding.shard_shape(shape) if isinstance(arr, Array) else shape
    if driver == "zarr3":
        chunk = _chunk(part, np.dtype(arr.dtype).itemsize)
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        return {"codecs": [], "shape": shape, "data_type": np.dtype(arr.dtype).name, "chunk_grid": grid}
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": shape, "chunks": [max(n, 1) for n in part]}
    raise ValueError(f"Unsupported driver: {driver}")


def _chunk(part: Sequence[int], width: int) -> list[int]:
    """A shape that divides a part and has at most about `_FILE_SIZE` bytes: the smallest prime factors go first."""
    chunk = [max(n, 1) for n in part]
    while prod(chunk) * width > 1.1 * _FILE_SIZE:
        factor, place = min((_smallest_factor(n), k) for k, n in enumerate(chunk) if n > 1)
        chunk[place] //= factor
    return chunk


def _smallest_factor(n: int) -> int:
    return next((f for f in range(2, isqrt(n) + 1) if n % f == 0), n)


def _has_metadata(spec: Any) -> bool:
    return isinstance(spec, dict) and ("metadata" in spec or any(map(_has_metadata, spec.values())))


# ---- writing


async def async_serialize(
    arr_inp: Any,
    tensorstore_spec: Spec,
    commit_future: list[Any] | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: Any = None,
) -> list[None]:
    """Write an array.

    Args:
      arr_inp: the array.
      tensorstore_spec: of the store; it gets the array's type if it has none.
      commit_future: a list that gets the futures of all that is not finished; without it, the coroutine ends when the
        array is written.
      context, chunk_layout, transaction: of tensorstore.
      primary_host: the process that makes the store; None: each.
      replica_id: of the parts that several devices have, this copy is written.

    Raises:
      UnsupportedError: there are several processes.
      ImportError: tensorstore is not installed.
    """
    ts = tensorstore()
    if process_count() > 1:
        raise UnsupportedError("async_serialize in several processes would need a barrier that hloom does not have")
    if not _has_metadata(tensorstore_spec):
        tensorstore_spec["metadata"] = _metadata(arr_inp, tensorstore_spec["driver"])
    if tensorstore_spec["driver"] == "zarr" and "dtype" not in tensorstore_spec:
        tensorstore_spec["dtype"] = np.dtype(arr_inp.dtype).name
    options = {
        "open": True,
        "context": context or default_context(),
        "chunk_layout": chunk_layout or _default_layout(),
        "transaction": transaction,
    }
    if primary_host in (None, 0):
        made = ts.open(ts.Spec(tensorstore_spec), create=True, **options)
        if commit_future is None:
            await made
        else:
            commit_future.append(made)
    store = await ts.open(ts.Spec(tensorstore_spec), assume_metadata=True, **options)  # without reading

    async def write(shard: Any) -> None:
        if shard.replica_id != replica_id:
            return
        data = np.asarray(shard.data)
        written = store[shard.index].write(data, can_reference_source_data_indefinitely=isinstance(arr_inp, Array))
        if commit_future is None:
            await written.commit
        else:
            commit_future.append(written.commit)
            await written.copy

    return list(await asyncio.gather(*map(write, arr_inp.addressable_shards)))


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[Spec]) -> None:
    """Write arrays, and return when they are written."""

    async def run() -> None:
        await asyncio.gather(*[async_serialize(a, s) for a, s in zip(arrays, tensorstore_specs, strict=True)])

    asyncio.run(run())


# ---- reading


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """The bytes that tensorstore holds while it reads a domain of the store `t`: of the chunks that the domain meets.

    A store without chunks is read as a whole.
    """
    chunk = t.chunk_layout.read_chunk_template
    place = t.domain if domain is None else domain
    width = int(t.dtype.numpy_dtype.itemsize)
    if not all(chunk[k].finite for k in range(t.rank)):
        return int(place.size) * width
    sizes = []
    for first, count, start, size in zip(place.origin, place.shape, chunk.origin, chunk.shape, strict=True):
        lower = (first - start) // size * size
        upper = -(-(first + count - start) // size) * size
        sizes.append(int(upper - lower))
    return prod(sizes) * width


async def async_deserialize(
    in_type: Sharding | Format | ShapeDtypeStruct,
    tensorstore_spec: Any,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: LimitInFlightBytes | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> Array:
    """Read an array.

    Args:
      in_type: its sharding, or a type that has one.
      tensorstore_spec: of the store.
      global_shape: the shape of the result, by default the store's. Elements outside of the store are 0.
      dtype: of the result, by default the store's.
      byte_limiter: bounds the memory of all arrays that are read at once.
      context, chunk_layout: of tensorstore.
      assume_metadata: the spec has the type; it is not read.

    Raises:
      TypeError: there is no sharding.
      ImportError: tensorstore is not installed.
    """
    ts = tensorstore()
    place: Any = in_type
    if isinstance(in_type, Format | ShapeDtypeStruct):
        place = in_type.sharding
    if isinstance(in_type, ShapeDtypeStruct) and dtype is None:
        dtype = in_type.dtype
    if not isinstance(place, Sharding):
        raise TypeError(
            "sharding passed to deserialization should be specified, concrete and an instance of "
            f"`hloom.sharding.Sharding`. Got {in_type}"
        )
    store = await ts.open(
        tensorstore_spec,
        open=True,
        assume_metadata=assume_metadata,
        context=context or default_context(),
        chunk_layout=chunk_layout or _default_layout(),
    )
    shape = tuple(map(int, store.shape if global_shape is None else global_shape))
    stored = store.dtype.numpy_dtype
    kind = canonical_dtype(stored if dtype is None else np.dtype(dtype))
    part = place.shard_shape(shape)

    async def read(device: Any, index: Any) -> Array:
        asked = ts.IndexTransform(input_shape=shape)[index].domain
        there = store.domain.intersect(asked)
        bytes_used = estimate_read_memory_footprint(store, there)
        if byte_limiter is not None:
            await byte_limiter.wait_for_bytes(bytes_used)
        out = np.zeros(part, stored)
        await ts.array(out)[ts.d[:].translate_to[asked.origin]][there].write(store[there])
        array: Array = device_put(jnp.asarray(out.astype(kind, copy=False)), SingleDeviceSharding(device))
        if byte_limiter is not None:
            await byte_limiter.release_bytes(bytes_used)
        return array

    here = place.addressable_devices
    pieces = [read(d, index) for d, index in place.devices_indices_map(shape).items() if d in here]
    return make_array_from_single_device_arrays(shape, place, list(await asyncio.gather(*pieces)), dtype=kind)


def run_deserialization(
    shardings: Sequence[Sharding | Format],
    tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[Sequence[int] | None] | None = None,
    dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[Array]:
    """Read arrays. concurrent_gb: about so many gigabytes of memory are used at once."""
    nothing: list[Any] = [None] * len(tensorstore_specs)

    async def run() -> list[Array]:
        limiter = LimitInFlightBytes(concurrent_gb * 10**9)
        each = zip(shardings, tensorstore_specs, global_shapes or nothing, dtypes or nothing, strict=True)
        return list(await asyncio.gather(*[async_deserialize(*given, byte_limiter=limiter) for given in each]))

    return asyncio.run(run())



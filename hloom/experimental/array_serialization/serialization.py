"""Writing arrays in the background, for checkpoints."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from ...hlo.errors import UnsupportedError
from ...monitoring import record_event_duration_secs
from ...namespaces import publish as _publish
from ...tracer.arrays.array import Array
from ...tracer.arrays.layouts import Format
from ...tracer.sharding.devices import process_count
from ...tracer.sharding.shardings import Sharding
from ...tracer.trees import tree
from .tensorstore_impl import (
    async_deserialize,
    async_serialize,
    estimate_read_memory_footprint,
    run_deserialization,
    run_serialization,
)
from .tensorstore_impl import get_tensorstore_spec as _spec_of

__all__ = [
    "AsyncManager",
    "BarrierTimeoutError",
    "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase",
    "async_deserialize",
    "async_serialize",
    "estimate_read_memory_footprint",
    "get_tensorstore_spec",
    "is_remote_storage",
    "run_deserialization",
    "run_serialization",
]

get_tensorstore_spec = functools.partial(_spec_of, driver="zarr", ocdbt=False)
"""The spec of an array's store, a folder of its own. See `tensorstore_impl.get_tensorstore_spec`."""


class BarrierTimeoutError(Exception):
    """Other processes did not finish their parts in time. It is not raised: one process writes."""


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a spec, or a URL, is about Google's or Amazon's storage.

    >>> from hloom.experimental.array_serialization.serialization import is_remote_storage
    >>> is_remote_storage("gs://bucket/a"), is_remote_storage({"kvstore": {"driver": "file", "path": "/tmp/a"}})
    (True, False)
    """
    if isinstance(tspec, str):
        return re.match("(gs|s3)://", tspec) is not None
    for key in ("base", "kvstore"):
        if key in tspec:
            return is_remote_storage(tspec[key])
    return tspec.get("driver") in ("gcs", "s3")


class GlobalAsyncCheckpointManagerBase(ABC):
    """The interface of an object that writes arrays in the background, one set after the other."""

    @abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of the background, if there was one. It does not wait."""

    @abstractmethod
    def wait_until_finished(self) -> None:
        """Return when all is written."""

    @abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]) -> None:
        """Write arrays."""

    @abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Sharding],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Sequence[int] | None] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> list[Array]:
        """Read arrays."""


class AsyncManager:
    """Waits in a thread for futures. UnsupportedError if there are several processes.

    timeout_secs: how long to wait for other processes; there are none.
    """

    def __init__(self, timeout_secs: float = 300) -> None:
        if process_count() > 1:
            raise UnsupportedError(
                f"{type(self).__name__} in several processes would need a barrier at which threads wait for others"
            )
        self._futures: Sequence[Any] = ()
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def _start(self, on_commit_callback: Callable[[], None] | None) -> None:
        """Wait for the futures in a thread, and then call the function."""

        def finish() -> None:
            started = time.time()
            try:
                for future in self._futures:
                    future.result()
                if on_commit_callback is not None:
                    on_commit_callback()
            except Exception as error:
                self._error = error
            else:
                duration = time.time() - started
                record_event_duration_secs("/jax/checkpoint/write/async/thread_duration_sec", duration)

        self._thread = Thread(target=finish)
        self._thread.start()

    def check_for_errors(self) -> None:
        """Raise the error of the thread, if there was one, once. It does not wait."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Return when the thread has ended; raise its error, if there was one."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays by tensorstore: `serialize` returns when the arrays' memory may change, and a thread does the rest.

    Raises (when called):
      ImportError: tensorstore is not installed.
      UnsupportedError: there are several processes.
    """

    def serialize(
        self,
        arrays: Any,
        tensorstore_specs: Any,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Write arrays, a list, after those of the call before are written; call the function when it is done."""
        self.wait_until_finished()
        futures: list[Any] = []

        async def copy() -> None:
            pairs = zip(arrays, tensorstore_specs, strict=True)
            await asyncio.gather(
                *[async_serialize(a, s, commit_future=futures, transaction=transaction) for a, s in pairs]
            )

        asyncio.run(copy())
        self._futures = futures
        self._start(on_commit_callback)

    def serialize_with_paths(
        self,
        arrays: Sequence[Any],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Write each array into a folder."""
        specs = tree.map(get_tensorstore_spec, paths)
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self,
        shardings: Sequence[Sharding | Format],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Sequence[int] | None] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """Read arrays, when what is being written is finished. See `tensorstore_impl.async_deserialize`."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self,
        shardings: Sequence[Sharding],
        paths: Sequence[str],
        global_shapes: Sequence[Sequence[int] | None] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """Read each array from a folder."""
        specs = tree.map(get_tensorstore_spec, paths)
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)


_publish(__name__)

"""`hloom.distributed`: several processes that run a program together. The names are jax.distributed's; MPI joins them.

    mpiexec -n 4 python train.py

Each process runs the whole script, calls `initialize` first, and then sees the devices of all processes.
"""

import os as _os
import sys as _sys
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from .hlo.collectives.mpi import MpiWorld as _MpiWorld
from .hlo.collectives.world import set_local_device_count as _set_local_device_count
from .hlo.collectives.world import set_world as _set_world
from .hlo.errors import UnsupportedError as _UnsupportedError
from .namespaces import publish as _publish
from .tracer.sharding.devices import settle as _settle

__all__ = ["initialize", "is_initialized", "shutdown"]

_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
"""Environment variables that the launchers of MPI libraries set for the processes that they start."""

_state: dict[str, _Any] = {"initialized": False, "world": None}


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | _Sequence[int] | None = None,
    **options: _Any,
) -> None:
    """Begin work as one of the processes that mpiexec has started: all must call it, before they use devices.

    Afterwards the devices of all processes are visible; process k's devices come after process k - 1's. Each process
    has as many as `HLOOM_NUM_DEVICES` says, or as `local_device_ids` has (0, 1, ...). A process that mpiexec has not
    started is alone, and needs no MPI. `num_processes` and `process_id` may repeat MPI's values; the address of a
    coordinator and other arguments of JAX's are not needed.

    RuntimeError if it was called before; ValueError if `num_processes` or `process_id` differs from MPI's value;
    UnsupportedError if mpi4py is missing, or for several processes that mpiexec has not started; CollectiveError if
    other processes do not call it in time.

    >>> hloom.distributed.initialize(num_processes=1, process_id=0)
    >>> hloom.distributed.shutdown()
    """
    if _state["initialized"]:
        raise RuntimeError("hloom.distributed.initialize should only be called once.")
    launched = "mpi4py.MPI" in _sys.modules or any(name in _os.environ for name in _LAUNCHED)
    if not launched and (num_processes not in (None, 1) or process_id not in (None, 0)):
        raise _UnsupportedError(
            f"hloom.distributed.initialize: process {process_id} of {num_processes}: MPI joins processes, and mpiexec "
            f"has not started this one. Say: mpiexec -n {num_processes or 2} python {_sys.argv[0] or 'script.py'}"
        )
    if local_device_ids is not None:
        ids = [local_device_ids] if isinstance(local_device_ids, int) else list(local_device_ids)
        if not ids or ids != list(range(len(ids))):
            raise _UnsupportedError(
                f"hloom.distributed.initialize: local_device_ids={local_device_ids!r}: the devices of a process are "
                "threads, 0, 1, ... up to the number that it shall have"
            )
        _set_local_device_count(len(ids))
    _settle()
    if launched:
        world = _MpiWorld()
        for name, given, found in (
            ("num_processes", num_processes, world.process_count), ("process_id", process_id, world.process_index),
        ):  # fmt: skip
            if given is not None and given != found:
                world.end()
                raise ValueError(f"hloom.distributed.initialize: {name}={given}, but MPI says {found}")
        _state["world"] = world
        _set_world(world)
    _state["initialized"] = True


def is_initialized() -> bool:
    """Whether `initialize` was called, and `shutdown` not since then.

    >>> hloom.distributed.is_initialized()
    False
    """
    found: bool = _state["initialized"]
    return found


def shutdown() -> None:
    """Undo `initialize`: this process is alone again. Others that wait for it are told.

    >>> hloom.distributed.initialize()
    >>> hloom.distributed.shutdown()
    """
    if _state["world"] is not None:
        _set_world(None)
        _state["world"].end()
    _state.update(initialized=False, world=None)


_publish(__name__)

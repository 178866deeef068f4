"""`hloom.distributed`: several processes that run a program together. The names are jax.distributed's; MPI joins them.

    mpiexec -n 4 python train.py
    srun -n 4 --mpi=pmix python train.py

Each process runs the whole script, calls `initialize` first, and then sees the devices of all processes.
"""

import os as _os
import sys as _sys
from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from typing import Any as _Any

from .hlo.collectives.launchers import Launched as _Launched
from .hlo.collectives.launchers import launched as _launched
from .hlo.collectives.mpi import MpiWorld as _MpiWorld
from .hlo.collectives.world import set_local_device_count as _set_local_device_count
from .hlo.collectives.world import set_world as _set_world
from .hlo.errors import UnsupportedError as _UnsupportedError
from .namespaces import publish as _publish
from .tracer.sharding.devices import settle as _settle

__all__ = ["initialize", "is_initialized", "shutdown"]

_state: dict[str, _Any] = {"initialized": False, "world": None}


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | _Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    **options: _Any,
) -> None:
    """Begin work as one of the processes that a launcher has started: all must call it, before they use devices.

    Afterwards the devices of all processes are visible; process k's devices come after process k - 1's. Each process
    has as many as `HLOOM_NUM_DEVICES` says, or as `local_device_ids` has (0, 1, ...). `num_processes` and `process_id`
    may repeat MPI's values; the address of a coordinator and other arguments of JAX's are not needed. Unless
    `HLOOM_NUM_THREADS` is set, processes that a launcher lets run on the same CPUs share them from now on.

    The environment says what has started the process: mpiexec of Open MPI, MPICH, Intel MPI and MVAPICH; Slurm's srun;
    PMIx. A process that none of them has started is alone, and needs no MPI. `cluster_detection_method` names one
    ("ompi", "mvapich", "pmi", "slurm", "pmix"), or is "mpi4py" (ask MPI in any case) or "deactivate" (alone, unless
    `num_processes` says otherwise).

    RuntimeError if it was called before; ValueError if `num_processes` or `process_id` differs from MPI's value, and
    for a method that is unknown or has not started this process; UnsupportedError if mpi4py is missing, for several
    processes that no launcher has started, if MPI does not see the processes that the launcher has started, and for a
    pod of an indexed job of Kubernetes (unless `num_processes` is 1); CollectiveError if other processes do not call it
    in time.

    >>> hloom.distributed.initialize(num_processes=1, process_id=0)
    >>> hloom.distributed.shutdown()
    """
    if _state["initialized"]:
        raise RuntimeError("hloom.distributed.initialize should only be called once.")
    found = _started(cluster_detection_method, num_processes)
    joined = "mpi4py.MPI" in _sys.modules or cluster_detection_method == "mpi4py" or found is not None
    if cluster_detection_method == "deactivate":
        joined = num_processes not in (None, 1)
    if not joined and (num_processes not in (None, 1) or process_id not in (None, 0)):
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
    if joined:
        world = _MpiWorld()
        try:
            _check(world, found, num_processes, process_id)
        except Exception:
            world.end()
            raise
        _share(world.cpu_share)
        _state["world"] = world
        _set_world(world)
    _state["initialized"] = True


def _started(method: str | None, num_processes: int | None) -> _Launched | None:
    """What has started this process together with others; None if it is alone, or if MPI itself is to say."""
    if method in ("mpi4py", "deactivate"):
        return None
    try:
        found = _launched(_os.environ, method)
    except ValueError as error:
        raise ValueError(f"hloom.distributed.initialize: {error}, and neither mpi4py nor deactivate") from None
    if found is None and method is not None:
        raise ValueError(f"hloom.distributed.initialize: {method!r} has not started this process: no such environment")
    if found is not None and found.launcher.name == "k8s":
        if num_processes == 1:
            return None
        raise _UnsupportedError(
            f"hloom.distributed.initialize: this is pod {found.index} of an indexed job of Kubernetes, and MPI joins "
            f"processes: {found.launcher.advice}; if pods need nothing of each other, say num_processes=1"
        )
    return None if found is not None and found.count == 1 else found


def _check(world: _MpiWorld, found: _Launched | None, num_processes: int | None, process_id: int | None) -> None:
    """MPI must see as many processes as the launcher has started and the caller expects."""
    for name, given, seen in (
        ("num_processes", num_processes, world.process_count), ("process_id", process_id, world.process_index),
    ):  # fmt: skip
        if given is not None and given != seen:
            raise ValueError(f"hloom.distributed.initialize: {name}={given}, but MPI says {seen}")
    if found is not None and (world.process_count < (found.count or 1) or world.process_index != found.index):
        raise _UnsupportedError(
            f"hloom.distributed.initialize: by the environment ({found.launcher.name}) this is process {found.index} "
            f"of {found.count or 'several'}, but MPI says {world.process_index} of {world.process_count}: "
            f"{found.launcher.advice}"
        )


def _share(threads: int | None) -> None:
    """Use no more CPUs than are left by other processes of this host; None: there are no others."""
    if not _os.environ.get("HLOOM_NUM_THREADS"):
        _import_module(".numba_backend.runtime.threads", __package__).set_num_threads(threads)


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
        _share(None)
    _state.update(initialized=False, world=None)


_publish(__name__)

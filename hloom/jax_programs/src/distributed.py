"""jax._src.distributed: the state of the processes that run a program together, which MPI joins."""

from typing import Any as _Any

from ... import process_count as _process_count
from ... import process_index as _process_index

__all__ = ["global_state"]


class _State:
    """JAX's processes talk to a service through a client; here there is none."""

    client: _Any = None
    service: _Any = None
    preemption_sync_manager: _Any = None
    coordinator_address: str | None = None

    @property
    def process_id(self) -> int:
        return _process_index()

    @property
    def num_processes(self) -> int:
        return _process_count()


global_state = _State()

"""`hloom.distributed`: several processes that run a program together. There is one; the names are jax.distributed's."""

from typing import Any as _Any

from .hlo.errors import UnsupportedError as _UnsupportedError
from .namespaces import publish as _publish

__all__ = ["initialize", "is_initialized", "shutdown"]

_state = {"initialized": False}


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: _Any = None,
    **options: _Any,
) -> None:
    """Begin work as one of `num_processes` processes. There is one: UnsupportedError for more, RuntimeError if it was
    called before. The other arguments are JAX's; nobody is asked.

    >>> import hloom
    >>> hloom.distributed.initialize(num_processes=1, process_id=0)
    >>> hloom.distributed.shutdown()
    """
    if _state["initialized"]:
        raise RuntimeError("hloom.distributed.initialize should only be called once.")
    if num_processes not in (None, 1) or process_id not in (None, 0):
        raise _UnsupportedError(
            f"hloom.distributed.initialize: process {process_id} of {num_processes}: hloom runs a program in one "
            "process. Programs over several come later."
        )
    _state["initialized"] = True


def is_initialized() -> bool:
    """Whether `initialize` was called, and `shutdown` not since then.

    >>> import hloom
    >>> hloom.distributed.is_initialized()
    False
    """
    return _state["initialized"]


def shutdown() -> None:
    """End what `initialize` began.

    >>> import hloom
    >>> hloom.distributed.initialize()
    >>> hloom.distributed.shutdown()
    """
    _state["initialized"] = False


_publish(__name__)

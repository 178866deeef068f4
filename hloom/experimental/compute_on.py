"""`hloom.experimental.compute_on`: where operations run, with names of jax.experimental.compute_on. All run on the
host.
"""

from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any as _Any

from ..namespaces import publish as _publish

__all__ = ["compute_on", "compute_on2"]


def _check(compute_type: object) -> None:
    if not isinstance(compute_type, str):
        raise TypeError("`compute_on`'s compute_type argument must be a string.")
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not compute_type.startswith("gpu_stream:"):
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, `device`, "
            "`tpu_sparsecore`, and `gpu_stream:#`."
        )


@_contextmanager
def compute_on(compute_type: str) -> _Iterator[None]:
    """A context, and a decorator, for operations that run on the host ("device_host") or on its device: here both are
    the same. ValueError for another text than JAX takes.

    >>> from hloom.experimental.compute_on import compute_on
    >>> with compute_on("device_host"):
    ...     y = jnp.arange(3) + 1
    """
    _check(compute_type)
    yield


def compute_on2(
    f: _Callable[..., _Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: _Any,
    compiler_options: dict[str, _Any] | None = None,
) -> _Callable[..., _Any]:
    """`f` itself, or a decorator: a function of arrays that runs on the host or on its device. See `compute_on`.

    out_memory_spaces, compiler_options: accepted; there is one memory.

    >>> from hloom.experimental.compute_on import compute_on2
    >>> compute_on2(lambda x: x + 1, compute_type="device_host", out_memory_spaces=None)(1)
    2
    """
    _check(compute_type)
    return (lambda g: g) if f is None else f


_publish(__name__)

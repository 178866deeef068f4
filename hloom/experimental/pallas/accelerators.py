"""Names of jax.experimental.pallas that are about GPUs and TPUs: they can be imported, and their use is an
UnsupportedError."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from ...namespaces.not_written import not_written

_HOME = __name__.rpartition(".")[0]


def _refused(names: str, why: str) -> Iterable[Any]:
    return not_written(_HOME, names, why).values()


delay, get_global, select_ref, semaphore, semaphore_read, semaphore_signal, semaphore_wait = _refused(
    "delay get_global select_ref semaphore semaphore_read semaphore_signal semaphore_wait",
    "it is for copies and cores that run at the same time, which TPUs and GPUs have",
)


class DeviceIdType(enum.Enum):
    """How devices are numbered, for signals between TPUs."""

    MESH = "mesh"
    LOGICAL = "logical"

"""The CPUs of processes that run on the same host: how many each may use, so that together they use each CPU once.

A launcher binds each process to CPUs of its own (`srun --cpu-bind`, `mpiexec --bind-to`), or does not: then every
process of a host may run on all CPUs, and a process that starts a thread for each has started too many. So processes
tell each other their host and their CPUs when they join; a CPU that k processes may use counts 1/k for each of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]
MOST_CPUS = 8192
"""Linux's largest number of CPUs. Those with higher numbers are not counted."""


def description(host: str, cpus: Sequence[int]) -> NDArray:
    """What a process tells: u8[8 + MOST_CPUS / 8], a hash of its host's name and a bit for each CPU."""
    bits = np.zeros(MOST_CPUS, np.uint8)
    bits[[cpu for cpu in cpus if cpu < MOST_CPUS]] = 1
    return np.concatenate([np.frombuffer(hashlib.sha256(host.encode()).digest()[:8], np.uint8), np.packbits(bits)])


def fair_share(told: NDArray, index: int) -> int:
    """How many threads the process `index` should have, at least 1. `told`: a row of `description` for each process.

    >>> told = np.stack([description("a", range(8)), description("a", range(8)), description("b", range(8))])
    >>> [fair_share(told, index) for index in range(3)]
    [4, 4, 8]
    """
    neighbours = (told[:, :8] == told[index, :8]).all(axis=1)
    mine = np.unpackbits(told[index, 8:]).astype(bool)
    users = sum(np.unpackbits(row[8:])[mine].astype(np.int64) for row in told[neighbours])
    return max(1, int(np.sum(1 / np.asarray(users, np.float64)) + 1e-6))

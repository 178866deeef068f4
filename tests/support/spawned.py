"""Work for processes that are started anew (`multiprocessing` by spawn), as all are on systems without forks.

A process that `support.lacking` changed starts its children with the same name in the environment, and this module
changes them, too, before hloom is imported.
"""

from __future__ import annotations

import os

if "HLOOM_TESTS_LACK" in os.environ:
    from support import lacking  # noqa: F401

import signal
import threading
import time
from typing import Any

import numpy as np
from hloom.hlo.system import system
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
from hloom.numba_backend.runtime.store import KernelStore

from support.signals import end_after, interrupt

COUNT = 1 << 16
KERNEL = KernelSource("k", "def k(lo, hi, x):\n for i in range(lo, hi):\n  x[i] = x[i] + 1\n", (("pointer", "f32"),))


def add_ones(times: int) -> tuple[str, set[float]]:
    """Run a program on all threads so many times on zeros: the system's name, and the numbers that come out."""
    builder = ProgramBuilder()
    builder.kernel(KERNEL, [pointer(0)], COUNT, 1 << 10)
    program, x = builder.build(), np.zeros(COUNT, np.float32)
    for _ in range(times):
        program.run([x.ctypes.data])
    return system.name, set(map(float, x))


def interrupted(delay: float) -> tuple[str, float, float]:
    """Start a loop without end, and interrupt it after so many seconds: the system's name, how much later it ended, and
    what a loop gives that is run next."""
    import hloom
    import hloom.numpy as jnp
    from hloom import lax

    def halve(n: Any) -> Any:  # n times; for a negative n the counter stands still
        step = jnp.where(n < 0, 0, 1)
        return lax.while_loop(lambda s: s[1] != n, lambda s: (s[0] * 0.5 + 1, s[1] + step), (0.0, 0))[0]

    end_after(200)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it
    count = hloom.jit(halve)
    count(1)
    started = time.monotonic()
    try:
        threading.Timer(delay, interrupt).start()
        count(-1)
    except KeyboardInterrupt:
        return system.name, time.monotonic() - started - delay, count(1_000_000).item()
    raise AssertionError("it ended")


def compiled_in(folder: str) -> int:
    """How many kernels a process compiles that asks for one in a store."""
    store = KernelStore(folder)
    store.get(KERNEL)
    return store.statistics.compiled

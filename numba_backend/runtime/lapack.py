"""Calls of a LAPACK routine for every matrix of a batch, in native code and on the runtime's threads.

A batch of small matrices is cut into pieces; a piece makes single-threaded calls one after the other. Large matrices
are left to OpenBLAS's own threads, at most as many as the runtime may use. The matrix products set the number of these
threads too: see blas.py.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..machine import SHARE_NANOSECONDS, this_machine
from .blas import thread_setting
from .executor import native_function
from .kernel import KernelSource
from .store import default_store
from .threads import ENTER_BLAS, LEAVE_BLAS, RUN_PARALLEL, get_num_threads, pool_address

NDArray = np.ndarray[Any, Any]


# Words of a job: routine, number of calls, calls in a piece; then for each argument: address, step, step of a piece.
_ROUTINE, _COUNT, _PIECE, _ARGUMENTS = 0, 8, 16, 24


@functools.cache
def _pieces_function(count: int) -> KernelSource:
    """`lo, hi, job`: calls a routine of `count` arguments for the pieces lo to hi."""
    words = [[f"load(job + {_ARGUMENTS + 24 * k + 8 * j})" for j in range(3)] for k in range(count)]
    arguments = ", ".join(f"{address} + i * {step} + piece * {work}" for address, step, work in words)
    name = f"lapack_pieces_{count}"
    source = f"""
def {name}(lo, hi, job):
    for piece in range(lo, hi):
        first = piece * load(job + {_PIECE})
        last = smaller(first + load(job + {_PIECE}), load(job + {_COUNT}))
        for i in range(first, last):
            call_routine{count}(load(job + {_ROUTINE}), {arguments})
    return 0
"""
    return native_function(name, source, 3)


_RUN = native_function(
    "lapack_run",
    f"""
def lapack_run(pieces, entry, job, setting, pool):
    set = load(setting + 8)
    call4(load(pool + {ENTER_BLAS}), pool, load(setting), set, load(setting + 16))
    if pieces > 1:
        call6(load(pool + {RUN_PARALLEL}), pool, entry, job, pieces, 1, 0)
    else:
        call_kernel(entry, 0, pieces, job)
    call2(load(pool + {LEAVE_BLAS}), pool, set)
    return 0
""",
    5,
)


LAPACK_FUNCTIONS = (_RUN, *(_pieces_function(count) for count in range(5, 21)))
"""The functions here, for all numbers of arguments that routines have."""


def large_bytes() -> int:
    """A matrix of this many bytes or more uses all threads."""
    return this_machine().second_cache


def nanoseconds(item_bytes: int) -> float:
    """n ** 3 for a matrix of f64 with n rows, and the time of a call."""
    return 200 + float((item_bytes / 8) ** 1.5)


def pieces_of(count: int, item_bytes: int) -> int:
    """Into how many pieces `count` matrices of `item_bytes` are cut, for threads that share them; 1 where OpenBLAS's
    own threads do better, or none would help."""
    threads, total = get_num_threads(), count * nanoseconds(item_bytes)
    if threads == 1 or item_bytes >= large_bytes() or total < 24 * SHARE_NANOSECONDS:
        return 1
    return max(1, min(2 * threads, count, int(total / (12 * SHARE_NANOSECONDS))))


def loop_natively(function: int, count: int, addresses: NDArray, steps: NDArray, work: NDArray) -> None:
    """As `loop_in_python` of hlo/custom_call_targets/library.py. The caller may hold the GIL: this releases it."""
    item_bytes = int(steps.max(initial=0))
    threads = 1 if count * nanoseconds(item_bytes) < 24 * SHARE_NANOSECONDS else get_num_threads()
    pieces = pieces_of(count, item_bytes)
    size = -(-count // pieces)
    pieces = -(-count // size)
    addresses, kept = addresses.copy(), []
    if pieces > 1:
        work = (work + 63) & -64  # pieces on separate cache lines
        for k in np.flatnonzero(work):
            kept.append(np.empty(int(work[k]) * pieces, np.uint8))
            addresses[k] = kept[-1].ctypes.data
    else:
        work = np.zeros_like(work)
    table = np.stack([addresses, steps, work], 1).reshape(-1)
    job = np.concatenate([np.array([function, count, size], np.int64), table])
    get, set_ = thread_setting()
    setting = np.array([get, set_, 1 if pieces > 1 else threads], np.int64)
    entry, run = _functions(len(steps))
    run(pieces, entry, job.ctypes.data, setting.ctypes.data, pool_address())


@functools.cache
def _functions(count: int) -> tuple[int, Callable[..., int]]:
    entry, run = default_store().get_many([_pieces_function(count), _RUN])
    return entry, ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(run)

"""Kernels that take long, in steps: between two of them a program looks whether it was told to stop.

A row `Op.LONG` is a kernel's row with two words more: how much of the range is a step, some 20 ms as estimated, and
what the pool's threads call. Each step is a range as threads get them, so the result does not depend on how long a step
is. A kernel of less than `LONG_NANOSECONDS` has a usual row, which knows nothing of this.
"""

from __future__ import annotations

from .executor import API, CALL_PYTHON, LOOK, STATUS, native_function
from .threads import get_num_threads

LONG_NANOSECONDS, STEP_NANOSECONDS = 200_000_000, 20_000_000

_RUN_LONG = f"""
def run_long(row, arguments, pool, watch):
    entry = load(row + 16)
    own = arguments + load(row + 24) * 8
    extent = load(row + 32)
    grain = load(row + 40)
    piece = stack(3)
    store(piece, entry)
    store(piece + 8, own)
    status = 0
    lo = 0
    while lo < extent and status == 0:
        count = smaller(load(row + 48), extent - lo)
        if pool == 0 or count < grain + grain:
            call_kernel(entry, lo, lo + count, own)
        else:
            store(piece + 16, lo)
            call6(load(pool + 8), pool, load(row + 56), piece, count, grain, watch)
        lo += count
        status = load(watch + {8 * STATUS})
        if status == 0:
            status = call3(load(watch + {8 * LOOK}), load(watch + {8 * API}), load(watch + {8 * CALL_PYTHON}), watch)
    return status
"""

_LONG_PIECE = """
def long_piece(lo, hi, piece):
    first = load(piece + 16)
    call_kernel(load(piece), first + lo, first + hi, load(piece + 8))
    return 0
"""

RUN_LONG = native_function("run_long", _RUN_LONG, 4)
"""`int64 run_long(row, arguments, pool, watch)`; the status that stopped it, or 0."""
LONG_PIECE = native_function("long_piece", _LONG_PIECE, 3)
"""A part of a step, for the pool: the kernel on the range that the step begins with."""


def step_of(extent: int, grain: int, nanoseconds: float) -> int | None:
    """How much of a kernel's range is a step; None if it is not to be cut: if it is short, or if no thread may take a
    part of it. A step is long enough for the threads, and a multiple of 64, as pieces for threads are."""
    if not grain or nanoseconds < LONG_NANOSECONDS:
        return None
    step = max(int(extent * STEP_NANOSECONDS / nanoseconds), 2 * grain * get_num_threads())
    if step >= 64:
        step = -(-step // 64) * 64
    return step if step < extent else None

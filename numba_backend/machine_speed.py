"""How fast this machine is: a measurement of about a second, kept in the kernel store.

    memory      a[i] = b[i] + c * d[i] in f64 over arrays of 48 MB each, on all threads; 24 bytes for each element
    arithmetic  products of matrices with 1,024 rows and columns, in f32 and f64, by the BLAS that programs use

The best of several runs counts, so that other processes disturb little. What was measured is kept under a name with the
CPU and the number of threads.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable

import numpy as np

from ..hlo.timeline.summary import MachineSpeed
from .runtime.blas import Gemm
from .runtime.cpus import cpu_description
from .runtime.kernel import KernelSource, Parameter, digest
from .runtime.program import ProgramBuilder, pointer, size
from .runtime.store import default_store
from .runtime.threads import get_num_threads

_ELEMENTS = 6 << 20
_ROWS = 1024
_RUNS = 6
_F64 = Parameter("pointer", "f64")
_TRIAD = KernelSource(
    "triad",
    "def triad(lo, hi, a, b, d, n):\n    for i in range(lo * n, hi * n):\n        a[i] = b[i] + 3.0 * d[i]\n",
    (_F64, _F64, _F64, Parameter("size", "s64")),
)


def machine_speed(measure_again: bool = False) -> MachineSpeed:
    """What was measured before on such a machine with as many threads; else it is measured now."""
    threads = get_num_threads()
    name = f"machine-{digest([cpu_description() or '', str(threads), _TRIAD.source])[:16]}.json"
    store = default_store()
    found = None if measure_again else _read(store.note(name), threads)
    if found is None:
        found = _measure(threads)
        numbers = {"bytes_per_second": found.bytes_per_second, **found.flops_per_second}
        store.keep_note(name, json.dumps(numbers))
    return found


def _read(text: str | None, threads: int) -> MachineSpeed | None:
    """None for what is not three positive numbers."""
    try:
        numbers = json.loads(text or "")
        memory, f32, f64 = (float(numbers[key]) for key in ("bytes_per_second", "f32", "f64"))
    except (ValueError, TypeError, KeyError):
        return None
    if not all(0 < number < math.inf for number in (memory, f32, f64)):
        return None
    return MachineSpeed(memory, {"f32": f32, "f64": f64}, threads)


def _measure(threads: int) -> MachineSpeed:
    chunk = 4096
    a, b, d = (np.full(_ELEMENTS, value) for value in (0.0, 1.0, 2.0))
    builder = ProgramBuilder()
    builder.kernel(_TRIAD, [pointer(0), pointer(1), pointer(2), size(chunk)], _ELEMENTS // chunk, 16)
    triad = builder.build()
    bases = [array.ctypes.data for array in (a, b, d)]
    seconds = _best(lambda: triad.run(bases))
    return MachineSpeed(24 * _ELEMENTS / seconds, {dtype: _product(dtype) for dtype in ("f32", "f64")}, threads)


def _product(dtype: str) -> float:
    n = _ROWS
    arrays = [np.ones((n, n), {"f32": np.float32, "f64": np.float64}[dtype]) for _ in range(3)]
    builder = ProgramBuilder()
    builder.gemm(Gemm(dtype, n, n, n, "N", "N", n, n, n), pointer(0), pointer(1), pointer(2))
    product = builder.build()
    bases = [array.ctypes.data for array in arrays]
    return 2 * n**3 / _best(lambda: product.run(bases))


def _best(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)

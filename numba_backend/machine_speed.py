"""Measure how fast this machine is, in about a second, and keep the result in the kernel store.

    memory      a[i] = b[i] + c * d[i] in f64 over arrays of 48 MB each, on all threads; 24 bytes for each element
    arithmetic  products of matrices with 384 rows and columns, in f32 and f64, as in any program

Pieces of a millisecond or a few are measured, an eighth of the arrays or one product, and the best one counts: so other
processes, which take the cores for some milliseconds at a time, disturb little. A piece of the arrays comes again when
all others have been through the caches. The results are kept under a name with the CPU and the number of threads.

People see these numbers: `hloom machine` prints them, and timelines compare kernels with them. No decision reads them.
A measurement differs from one process to the next, and programs that are stored must not; `cost.py` estimates with
numbers that are the same on all machines, but for the registers and the caches of each.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..hlo.text.parser import parse
from ..hlo.timeline.summary import MachineSpeed
from .compiler import NumbaCompiler
from .cpus import cpu_description
from .runtime.kernel import KernelSource, Parameter, digest
from .runtime.program import Program, ProgramBuilder, pointer, size
from .runtime.store import SPEED, default_store
from .runtime.threads import get_num_threads

NDArray = np.ndarray[Any, Any]
Run: TypeAlias = Callable[[], object]

_ELEMENTS = 6 << 20
_PIECES = 8
_ROWS = 384
_SECONDS = 1.0
_F64 = Parameter("pointer", "f64")
_TRIAD = KernelSource(
    "triad",
    "def triad(lo, hi, a, b, d, n):\n    for i in range(lo * n, hi * n):\n        a[i] = b[i] + 3.0 * d[i]\n",
    (_F64, _F64, _F64, Parameter("size", "s64")),
)
_PRODUCT = """HloModule product
ENTRY e {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  ROOT d = {shape} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


def machine_speed(measure_again: bool = False) -> MachineSpeed:
    """The speeds that were measured before on such a machine with as many threads; else they are measured now."""
    threads = get_num_threads()
    key = digest([cpu_description() or "", str(threads), _TRIAD.source, _PRODUCT])
    store = default_store()
    found = None if measure_again else _read(store.data(key, SPEED), threads)
    if found is None:
        found = _measure(threads)
        numbers = {"bytes_per_second": found.bytes_per_second, **found.flops_per_second}
        store.keep(key, SPEED, json.dumps(numbers).encode())
    return found


def _read(text: bytes | None, threads: int) -> MachineSpeed | None:
    """None unless it is three positive numbers."""
    try:
        numbers = json.loads(text or b"")
        memory, f32, f64 = (float(numbers[key]) for key in ("bytes_per_second", "f32", "f64"))
    except (ValueError, TypeError, KeyError):
        return None
    if not all(0 < number < math.inf for number in (memory, f32, f64)):
        return None
    return MachineSpeed(memory, {"f32": f32, "f64": f64}, threads)


def _measure(threads: int) -> MachineSpeed:
    triad, f32, f64 = _best([_triad(), [_product("f32")], [_product("f64")]])
    flops = 2 * _ROWS**3
    return MachineSpeed(24 * (_ELEMENTS // _PIECES) / triad, {"f32": flops / f32, "f64": flops / f64}, threads)


def _triad() -> list[Run]:
    """The pieces of the arrays."""
    chunk, piece = 4096, _ELEMENTS // _PIECES
    arrays = [np.full(_ELEMENTS, value) for value in (0.0, 1.0, 2.0)]
    builder = ProgramBuilder()
    builder.kernel(_TRIAD, [pointer(0), pointer(1), pointer(2), size(chunk)], piece // chunk, 16)
    return [_run(builder.build(), [array[k * piece :] for array in arrays]) for k in range(_PIECES)]


def _product(dtype: str) -> Run:
    n = _ROWS
    arrays = [np.ones((n, n), {"f32": np.float32, "f64": np.float64}[dtype]) for _ in range(2)]
    executable = NumbaCompiler().compile(parse(_PRODUCT.format(shape=f"{dtype}[{n},{n}]")))
    return lambda: executable.execute(arrays)


def _run(program: Program, arrays: Sequence[NDArray]) -> Run:
    return lambda: program.run([array.ctypes.data for array in arrays])


def _best(groups: Sequence[Sequence[Run]]) -> list[float]:
    """The shortest time of a piece of each group. The groups run alternately, each twice at least: disturbances come
    and go."""
    best = [math.inf] * len(groups)
    for run in (run for group in groups for run in group):
        run()
    ended = time.perf_counter() + _SECONDS
    while math.inf in best or time.perf_counter() < ended:
        for number, group in enumerate(groups):
            for run in group:
                start = time.perf_counter()
                run()
                best[number] = min(best[number], time.perf_counter() - start)
    return best

"""The cost of an all-reduce, between devices that are threads and devices that are processes.

    HLOOM_NUM_DEVICES=2 python benchmarks/collectives.py
    mpiexec -n 2 python benchmarks/collectives.py

For each size: the median time of a program that is one all-reduce of f32, and the best; the bandwidth, in bytes of the
array over the time; NumPy's addition of two such arrays and, in several processes, MPI's own Allreduce.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np
from hloom.hlo import parse
from hloom.hlo.backend import get_compiler
from hloom.hlo.collectives import local_numbers, world

import hloom

SIZES = (1, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
LAUNCHED = "OMPI_COMM_WORLD_SIZE" in os.environ or "PMI_RANK" in os.environ


def program(devices: int, size: int) -> str:
    """The module."""
    return f"""HloModule sum, replica_count={devices}
add {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[{size}] parameter(0)
  ROOT r = f32[{size}] all-reduce(x), replica_groups={{}}, to_apply=add }}"""


def times(function: Callable[[], object], count: int) -> tuple[float, float]:
    """Median and best, in milliseconds. Every process must call it as often, so the number of calls is given."""
    found = []
    for _ in range(count):
        started = time.perf_counter()
        function()
        found.append(time.perf_counter() - started)
    return statistics.median(found) * 1e3, min(found) * 1e3


def main() -> None:
    """Print the table."""
    if LAUNCHED:
        hloom.distributed.initialize()
    devices = sum(world().device_counts())
    is_first = world().process_index == 0
    if is_first:
        print(f"{devices} devices in {world().process_count} processes")
        print(f"{'bytes':>10}  {'median ms':>10}  {'best ms':>8}  {'GB/s':>6}  {'NumPy add':>10}  MPI Allreduce")
    for size in SIZES:
        numbers = local_numbers(devices, 1, None)
        arguments = [[np.full(size, k, np.float32)] for k in numbers]
        executable = get_compiler().compile(parse(program(devices, size)))
        executable.execute_on_devices(arguments)
        count = 100 if size < 1 << 20 else 15
        median, best = times(lambda e=executable, a=arguments: e.execute_on_devices(a), count)  # type: ignore[misc]
        x, total = np.ones(size, np.float32), np.empty(size, np.float32)
        added, _ = times(lambda x=x, total=total: np.add(x, x, out=total), count)  # type: ignore[misc]
        other = ""
        if LAUNCHED:
            from mpi4py import MPI

            reduced, _ = times(lambda x=x, total=total: MPI.COMM_WORLD.Allreduce(x, total), count)  # type: ignore[misc]
            other = f"{reduced:.3f}"
        if is_first:
            bandwidth = 4 * size / median / 1e6
            print(f"{4 * size:>10}  {median:>10.3f}  {best:>8.3f}  {bandwidth:>6.2f}  {added:>10.3f}  {other}")


if __name__ == "__main__":
    main()

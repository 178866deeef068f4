"""`hloom run`: a module on arrays."""

from __future__ import annotations

import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from ..distributed import initialize
from ..hlo.backend import get_compiler
from ..hlo.collectives.world import local_numbers
from ..hlo.ir import HloModule
from ..hlo.passes.partitioning import compiled, with_partitions
from ..hlo.shape import Shape
from ..hlo.target import Target
from ..hlo.timeline import spans
from ..hlo.timeline.timeline import timeline_of
from ..namespaces import backends  # noqa: F401  # makes the backends known
from .files import ModuleFile, NDArray, arguments_of_devices, read_module, scheduled, store_results, target_of
from .outcome import FINE, UsageError
from .profile import write_timeline


def execute(options: Namespace) -> int:
    """Compile, run, print or store; with --repeat also measure."""
    target = target_of(options)
    if options.mpi and (options.output or "").endswith(".npz"):
        raise UsageError("with --mpi each process stores its devices' results: give --output a folder, not one file")
    file = read_module(options.file)
    with file.within_means():
        return _execute(file, target, options)


def _execute(file: ModuleFile, target: Target, options: Namespace) -> int:
    module = scheduled(with_partitions(file.module), options)
    if options.mpi:
        initialize()
    else:
        file.with_devices(module)
    if not options.timeline:
        return _run(module, target, options)
    recorder = spans.Recorder()
    spans.start(recorder)
    try:
        return _run(module, target, options)
    finally:
        write_timeline(timeline_of(recorder, spans.stop(recorder)), options.timeline)


def _run(module: HloModule, target: Target, options: Namespace) -> int:
    started = time.perf_counter()
    module, executable = compiled(module, partial(get_compiler(options.backend).compile, target=target))
    compiling = time.perf_counter() - started
    devices = module.replica_count * module.num_partitions
    numbers = local_numbers(module.replica_count, module.num_partitions, None)
    every = arguments_of_devices(module, options)
    arguments = [every[number] for number in numbers]
    started = time.perf_counter() - compiling
    results = executable.execute_on_devices(arguments)
    first = time.perf_counter() - started
    if options.repeat:
        seconds = []
        for _ in range(options.repeat):
            started = time.perf_counter()
            executable.execute_on_devices(arguments)
            seconds.append(time.perf_counter() - started)
        print(_timing(first, seconds), file=sys.stderr)
    if options.output:
        store_results(options.output, dict(zip(numbers, results, strict=True)), devices > 1)
    if options.print or not options.output:
        for number, each in zip(numbers, results, strict=True):
            if devices > 1:
                replica, partition = divmod(number, module.num_partitions)
                print(f"device {number}: replica {replica}, partition {partition}")
            print_results(each, executable.result_shapes)
    return FINE


def _timing(first: float, seconds: Sequence[float]) -> str:
    fastest, median = min(seconds) * 1e3, statistics.median(seconds) * 1e3
    return (
        f"compile and first run {first * 1e3:.1f} ms; then {len(seconds)} runs: fastest {fastest:.3f} ms, "
        f"median {median:.3f} ms"
    )


def print_results(results: Sequence[NDArray], shapes: Sequence[Shape]) -> None:
    """Each result's type, and its elements as NumPy prints them: for large arrays, only the corners."""
    for number, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        print(f"result {number}: {shape}")
        print(result)

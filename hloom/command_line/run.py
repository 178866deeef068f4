"""`hloom run`: a module on arrays."""

from __future__ import annotations

import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from .. import backends  # noqa: F401  # makes the backends known
from ..hlo.backend import get_compiler
from ..hlo.ir import HloModule
from ..hlo.shape import Shape
from ..hlo.target import Target
from ..hlo.timeline import spans
from ..hlo.timeline.timeline import timeline_of
from .files import NDArray, arguments_of_devices, read_module, store_results, target_of, with_devices_for
from .outcome import FINE
from .profile import write_timeline


def execute(options: Namespace) -> int:
    """Compile, run, print or store; with --repeat also measure."""
    target = target_of(options)
    with read_module(options.file).within_memory() as module:
        return _execute(module, target, options)


def _execute(module: HloModule, target: Target, options: Namespace) -> int:
    with_devices_for(module)
    arguments = arguments_of_devices(module, options)
    if not options.timeline:
        return _run(module, target, arguments, options)
    recorder = spans.Recorder()
    spans.start(recorder)
    try:
        return _run(module, target, arguments, options)
    finally:
        write_timeline(timeline_of(recorder, spans.stop(recorder)), options.timeline)


def _run(module: HloModule, target: Target, arguments: Sequence[Sequence[NDArray]], options: Namespace) -> int:
    devices = module.replica_count * module.num_partitions
    started = time.perf_counter()
    executable = get_compiler(options.backend).compile(module, target=target)
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
        store_results(options.output, results)
    if options.print or not options.output:
        for number, each in enumerate(results):
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

"""Time schedules for a program on this machine, and keep the fastest.

Changes of steps are tried one after the other: jumps in place of a kernel for a whole loop, how long a thread's share
takes, the width of vectors; then, of each kernel with an algorithm, each `Split` of half and of twice the size. A
change stays if the program is faster by more than the noise, in rounds that run both alternately. Arguments are drawn:
floats between 1/2 and 1, integers 0, so that indices are valid. The schedules are kept in the store, under the key of
the program, and another process asks no more.

A program is not tuned if it has side effects, if it has a loop with a trip count that depends on its arguments, or if
it runs on several devices: running it with drawn arguments would say nothing, or do harm. The log says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np

from ..hlo.analyses.trip_count import known_trip_count
from ..hlo.backend import DeviceBuffer, NDArray
from ..hlo.effects import effects_of
from ..hlo.errors import HloError, ScheduleError
from ..hlo.host_buffers import buffer_of
from ..hlo.ir import HloModule
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.support.progress import cleared, working
from .choices import schedules_of, with_schedules
from .cpus import cpu_description
from .executable import NumbaExecutable
from .runtime.kernel import digest
from .runtime.store import TUNING, default_store
from .runtime.threads import get_num_threads
from .schedule.steps import EVERY, Jumps, KernelStep, Pack, Schedules, Share, Split, Steps, Vectors
from .schedule.text import parse, to_text

LOGGER = logging.getLogger(__name__.partition(".")[0])

ROUNDS = 7
LEAST_SECONDS = 0.002
"""A sample calls a program as often as fills this time."""
MOST_SECONDS = 2.0
"""A program that takes longer is called once a round, in few rounds."""
GAIN = 0.95
"""A variant that takes more than this part of the best time is noise."""

Compile = Callable[[HloModule], NumbaExecutable]


def tuned(module: HloModule, key: str | None, compile_module: Compile) -> HloModule:
    """The module with the schedules that make its program fastest, beginning with those that it has. `key`: the name of
    the program in the store."""
    best = schedules_of(module)
    module = with_schedules(module, best)
    reason = _why_not(module)
    if reason is not None:
        LOGGER.warning("%s is not tuned: %s", module.name, reason)
        return module
    name = digest([key or "", str(get_num_threads())])
    if key is not None and (kept := default_store().data(name, TUNING)) is not None:
        with suppress(ScheduleError):  # a text of another version
            return with_schedules(module, parse(kept.decode()))
    fastest = compile_module(module)
    original = {name: getattr(text, "schedule", ()) for name, text in fastest.kernels().items()}
    inputs = [_drawn(shape) for shape in fastest.parameter_shapes]
    changes_of_all = [*_of_programs(module), *_of_kernels(original)]
    variants = sum(len(changes) for changes in changes_of_all)
    with working(f"tune {module.name}", variants, "variants") as work:
        for name_of_kernel, change in chain(*changes_of_all):
            tried = {**best, name_of_kernel: change(best.get(name_of_kernel, ()))}
            before = best.get(name_of_kernel, original.get(name_of_kernel, ()))
            shown = f"{name_of_kernel}: {', '.join(str(s) for s in tried[name_of_kernel] if s not in before)}"
            work.advance(0, shown)
            try:
                other = compile_module(with_schedules(module, tried))
            except HloError as error:
                _log("%s: no variant %s: %s", module.name, shown, error)
            else:
                old, new = _compared(fastest, other, inputs)
                _log("%s: %s takes %.3g of %.3g s", module.name, shown, new, old)
                if new < GAIN * old:
                    best, fastest = tried, other
            work.advance()
    if key is not None:
        default_store().keep(name, TUNING, to_text(best).encode())
    return with_schedules(module, best)


def _log(message: str, *about: object) -> None:
    with cleared():
        LOGGER.info(message, *about)


def _why_not(module: HloModule) -> str | None:
    if module.replica_count * module.num_partitions > 1:
        return "it runs on several devices"
    if effects_of(module.entry):
        return "it acts other than through its results"
    if any(not shape.is_array for p in module.entry.parameters for shape in p.shape.leaves()):
        return "an argument is no array"
    for instruction in module.instructions():
        if instruction.opcode is Opcode.WHILE and known_trip_count(instruction) is None:
            return f"how often the loop {instruction.name} turns is not known"
    return None


Changes = list[tuple[str, Callable[[Steps], Steps]]]
"""Steps of one kernel, or of all kernels; at most one of these changes can be kept."""


def _with(step: KernelStep) -> Callable[[Steps], Steps]:
    """The step in place of another of its kind."""
    return lambda steps: (*[s for s in steps if type(s) is not type(step)], step)


def _of_programs(module: HloModule) -> Iterator[Changes]:
    """Steps for all kernels."""
    if any(i.opcode is Opcode.WHILE for i in module.instructions()):
        yield [(EVERY, _with(Jumps()))]
    if get_num_threads() > 1:
        yield [(EVERY, _with(Share(nanoseconds))) for nanoseconds in (0, 5_000, 80_000)]
    if "avx512f" in (cpu_description() or ""):
        yield [(EVERY, _with(Vectors(bits))) for bits in (256, 512)]


def _of_kernels(schedules: Schedules) -> Iterator[Changes]:
    """Each `Split` of half and of twice the size."""
    for name, schedule in schedules.items():
        for place, step in enumerate(schedule):
            if isinstance(step, Split) and isinstance(step.size, int):
                yield [(name, _sized(schedule, place, size)) for size in (step.size // 2, step.size * 2) if size > 1]


def _sized(schedule: Steps, place: int, size: int) -> Callable[[Steps], Steps]:
    """The kernel's steps, or those that have been found for it, with another size of a `Split`; copies of its
    iterations have room for as many."""

    def change(best: Steps) -> Steps:
        steps = list(best or schedule)
        split = steps[place]
        assert isinstance(split, Split)
        steps[place] = replace(split, size=size)
        for k, step in enumerate(steps):
            if isinstance(step, Pack):
                layout = tuple((loop, size if loop == split.loop else most) for loop, most in step.layout)
                steps[k] = replace(step, layout=layout)
        return tuple(steps)

    return change


def _drawn(shape: Shape) -> NDArray:
    rng = np.random.default_rng(0)
    element = shape.element
    if element.is_floating or element.is_complex:
        return np.asarray(rng.uniform(0.5, 1.0, shape.dimensions)).astype(element.dtype)
    return np.zeros(shape.dimensions, element.dtype)


def _compared(first: NumbaExecutable, second: NumbaExecutable, inputs: Sequence[NDArray]) -> tuple[float, float]:
    """The least seconds of a call of each; the two are called alternately."""
    both = (first, second)
    once = max([_seconds(program, inputs, 1) for program in both])  # also loads code for the first call
    calls = max(1, min(1000, int(LEAST_SECONDS / max(once, 1e-7))))
    rounds = ROUNDS if once < MOST_SECONDS else 1
    times = [[_seconds(program, inputs, calls) for program in both] for _ in range(rounds)]
    return min(t[0] for t in times), min(t[1] for t in times)


def _seconds(program: NumbaExecutable, inputs: Sequence[NDArray], calls: int) -> float:
    total = 0.0
    for _ in range(calls):
        buffers = _buffers(program, inputs)  # anew: a program may write over arguments
        started = time.perf_counter()
        program.call(buffers)
        total += time.perf_counter() - started
    return total / calls


def _buffers(program: NumbaExecutable, inputs: Sequence[NDArray]) -> list[DeviceBuffer]:
    overwritten = program.overwrites_arguments
    return [buffer_of(x, shape, overwritten) for x, shape in zip(inputs, program.parameter_shapes, strict=True)]

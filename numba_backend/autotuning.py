"""Variants of a program, timed on this machine; the fastest is kept.

Each field of `Tuning` is tried in turn: a variant takes the place of the best so far if it is faster by more than the
noise, in rounds in which both run by turns. Arguments are drawn: floats between 1/2 and 1, integers 0, so that indices
are valid. What was chosen is kept in the store, under the key of the program, and another process asks no more.

A program is not tuned if it acts other than through its results, if it has a loop whose number of turns depends on its
arguments, or if it runs on several devices: what it does with drawn arguments would say nothing, or do harm. The log
says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ..hlo.analyses.trip_count import known_trip_count
from ..hlo.backend import DeviceBuffer, NDArray
from ..hlo.effects import effects_of
from ..hlo.errors import HloError, UnsupportedError
from ..hlo.host_buffers import buffer_of
from ..hlo.ir import HloModule
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from .executable import NumbaExecutable
from .runtime.cpus import cpu_description
from .runtime.store import default_store
from .runtime.threads import get_num_threads
from .tuning import Tuning, parse, with_tuning

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
    """The module with the choice that makes its program fastest. `key`: the name of the program in the store."""
    module = with_tuning(module, Tuning())
    reason = _why_not(module)
    if reason is not None:
        LOGGER.warning("%s is not tuned: %s", module.name, reason)
        return module
    name = f"{key}-{get_num_threads()}.tuning"
    if key is not None and (kept := default_store().note(name)) is not None:
        with suppress(UnsupportedError):  # a text of another version
            return with_tuning(module, parse(kept.strip()))
    best = Tuning()
    fastest = compile_module(module)
    inputs = [_drawn(shape) for shape in fastest.parameter_shapes]
    for variants in _variants(module):
        for change in variants(best):
            try:
                other = compile_module(with_tuning(module, change))
            except HloError as error:
                LOGGER.info("%s: no variant %s: %s", module.name, change.to_text(), error)
                continue
            old, new = _compared(fastest, other, inputs)
            LOGGER.info("%s: %s takes %.3g of %.3g s", module.name, change.to_text() or "the default", new, old)
            if new < GAIN * old:
                best, fastest = change, other
    if key is not None:
        default_store().keep_note(name, best.to_text() + "\n")
    return with_tuning(module, best)


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


def _variants(module: HloModule) -> Iterator[Callable[[Tuning], Sequence[Tuning]]]:
    """For each field, what to try instead of the best so far."""
    if any(i.opcode is Opcode.WHILE for i in module.instructions()):
        yield lambda best: [replace(best, native_loops=1 - best.native_loops)]
    if get_num_threads() > 1:
        yield lambda best: [replace(best, piece_nanoseconds=n) for n in (0, 5_000, 80_000)]
    if "avx512f" in (cpu_description() or ""):
        yield lambda best: [replace(best, vector_bits=bits) for bits in (256, 512)]


def _drawn(shape: Shape) -> NDArray:
    rng = np.random.default_rng(0)
    element = shape.element
    if element.is_floating or element.is_complex:
        return np.asarray(rng.uniform(0.5, 1.0, shape.dimensions)).astype(element.dtype)
    return np.zeros(shape.dimensions, element.dtype)


def _compared(first: NumbaExecutable, second: NumbaExecutable, inputs: Sequence[NDArray]) -> tuple[float, float]:
    """The least seconds a call of both, in turns."""
    both = (first, second)
    once = max([_seconds(program, inputs, 1) for program in both])  # also loads what the first call needs
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

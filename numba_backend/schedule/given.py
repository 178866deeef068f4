"""Emit a kernel under a schedule that a user gives or autotuning tries, in place of the policy's.

The steps of a policy fit the sizes and arrays that it saw; other steps are checked against them here, besides the
checks of `nest.py`: no array is read or written outside, no name means two things, and facts about arrays (`Band`,
`Padded`) stay as they are.
"""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...hlo.errors import ScheduleError
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Expr, Name, Number
from ..loops.lanes import WIDTHS
from ..loops.statements import LocalArray, SizeParameter, walk
from ..runtime.dialect import SCOPE
from ..runtime.dialect_memory import MOST_ELEMENTS
from .algorithm import Algorithm
from .apply import program_under
from .nest import Loop, Nest, nest_of
from .steps import (
    Band,
    Collect,
    Lanes,
    Pack,
    Padded,
    Padding,
    Parallel,
    Part,
    Schedule,
    Slice,
    Split,
    Step,
    Steps,
    Vectors,
)
from .text import KERNEL_STEPS, checked

WRITTEN_OUT = 1024
"""The most terms of sums that are written out."""
_LOCAL_BYTES = 1 << 18
"""Most bytes of a kernel's local arrays, which are on the stack of a thread."""


_FIXED = "its emitter fixes the order of its loops: only Vectors and Share can be given"


def scheduled(kernel: EmittedKernel, given: Steps) -> EmittedKernel:
    """The kernel under the steps of `given`. Steps of loops take the place of all that it has; without such, its loops
    stay. ScheduleError if they do not fit, or would change results."""
    steps = tuple(step for step in given if not isinstance(step, KERNEL_STEPS))
    if steps and list(map(str, steps)) != list(map(str, kernel.program.notes[1:])):
        kernel = _with_loops(kernel, tuple(checked(step) for step in steps))  # type: ignore[misc]
        _check_arrays(kernel)
    bits = [step.bits for step in given if isinstance(step, Vectors)]
    return replace(kernel, program=replace(kernel.program, vector_bits=bits[-1])) if bits else kernel


def _with_loops(kernel: EmittedKernel, given: Schedule) -> EmittedKernel:
    program = kernel.program
    if not program.notes:
        raise ScheduleError(_FIXED)
    if kernel.under is not None:
        return kernel.under(given)
    algorithm: Any = program.notes[0]
    if isinstance(algorithm, str):
        raise ScheduleError(_FIXED)
    old: Schedule = tuple(program.notes[1:])  # type: ignore[arg-type]
    sizes = {p.name: p.value for p in kernel.parameters if isinstance(p, SizeParameter)}
    pointers = [p for p in kernel.parameters if not isinstance(p, SizeParameter)]
    _check_words(algorithm, given, old, {p.name for p in kernel.parameters})
    _check_facts(algorithm, given, old)
    sizes = _with_parts(algorithm, given, old, sizes)
    steps = _with_names(given, old)
    nest = nest_of(algorithm, steps)
    _check_sizes(nest, sizes)
    named = [SizeParameter(name, value) for name, value in sizes.items()]
    parameters = (*pointers, *named)
    made = program_under(algorithm, steps, parameters, program.vector_bits)
    extent = _extent(nest, sizes)
    least = kernel.least if extent == kernel.extent else 1
    cost = kernel.nanoseconds / max(extent, 1)
    return replace(kernel, program=made, parameters=parameters, extent=extent, cost=cost, least=least)


def _part_names(schedule: Schedule) -> set[str]:
    return {word for s in schedule if isinstance(s, Part) for word in (s.loop, f"{s.loop}s")}


_OWN_WORDS = re.compile(
    r"((sums|element|factor|base|from|start|whole|to|item|part|lane|place|source|index|step|count|lo|hi)(_.*|\d.*)?)"
    r"|.*_(number|first|end|count|above|index|flipped)?"
)
"""Names that kernels have, whatever the schedule."""


def _check_words(algorithm: Algorithm, given: Schedule, old: Schedule, parameters: set[str]) -> None:
    """Each name means one thing, and the loops and arrays that a step names exist."""
    names = [d.name for d in algorithm.dimensions]
    hidden = {word for s in old for name in _HIDDEN for word in _as_words(getattr(s, name, ()))}
    taken = {*(parameters - _part_names(old)), *hidden, *SCOPE, *keyword.kwlist}
    operands = [a.name for a in algorithm.operands]
    packed: set[str] = set()
    new: list[str] = []
    for step in given:
        match step:
            case Part(dimension=name) | Slice(dimension=name) if name not in names:
                raise ScheduleError(f"no dimension {name}: there are {', '.join(names)}")
            case Pack(operand=name) if name not in operands:
                raise ScheduleError(f"no operand {name}: there are {', '.join(operands)}")
        new += _words_of(step)
        if isinstance(step, Pack):
            if step.operand in packed:
                raise ScheduleError(f"{step.operand} is packed twice")
            packed.add(step.operand)
    of_policy = {word for s in old for word in _words_of(s)}
    for word in new:
        if new.count(word) > 1 or word in names:
            raise ScheduleError(f"{word} is the name of two things")
        if not word or (word not in of_policy and (word in taken or _OWN_WORDS.fullmatch(word))):
            raise ScheduleError(f"{word!r} is a name that the kernel uses otherwise: take another one")
    counts = Counter("Parallel or Slice" if type(s) in (Parallel, Slice) else type(s).__name__ for s in given)
    for kind, least in _ONCE.items():
        if not least <= counts[kind] <= 1:
            raise ScheduleError(f"a schedule has {'one step' if least else 'at most one step'} {kind}")


_ONCE = {"Accumulate": 1, "Parallel or Slice": 0, "Order": 0, "Collect": 0, "Lanes": 0}

_HIDDEN = ("names", "start", "count", "above")


def _as_words(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _words_of(step: Step) -> list[str]:
    match step:
        case Part(loop=word):
            return [word, f"{word}s"]
        case Split(outer=word) | Pack(into=word) | Collect(into=word):
            return [word]
    return []


def _check_facts(algorithm: Algorithm, given: Schedule, old: Schedule) -> None:
    """ScheduleError if the steps change a fact that the policy knows about arrays."""
    known = {str(s) for s in old}
    for step in given:
        if isinstance(step, Band | Padded | Padding) and str(step) not in known:
            raise ScheduleError(f"{step} says what an array has: the kernel's own schedule does not")
    if algorithm.lines or any(isinstance(s, Padded | Padding) for s in old):
        lanes = next((s.loop for s in old if isinstance(s, Lanes)), "")
        fixed = [s for s in old if isinstance(s, Padded | Padding) or _is_along(s, lanes)]
        if missing := [s for s in fixed if str(s) not in {str(s) for s in given}]:
            raise ScheduleError(f"an operand lies in memory as the steps along {lanes} say: keep {missing[0]}")
        if others := [s for s in given if _is_along(s, lanes) and str(s) not in known]:
            raise ScheduleError(f"an operand lies in memory as the steps along {lanes} say: leave out {others[0]}")


def _is_along(step: Step, dimension: str) -> bool:
    match step:
        case Part(dimension=name) | Split(loop=name) | Lanes(loop=name):
            return name == dimension
    return False


def _with_parts(
    algorithm: Algorithm, given: Schedule, old: Schedule, sizes: Mapping[str, int]
) -> dict[str, int]:
    """The values of parameters. A step `Part` gives the size of a part, and the number of parts."""
    found = {name: value for name, value in sizes.items() if name not in _part_names(old)}
    own = {(s.dimension, s.loop) for s in old if isinstance(s, Part)}
    for step in given:
        if isinstance(step, Part):
            whole = _value(algorithm.dimension(step.dimension).extent, sizes)
            if step.size:
                size = min(step.size, max(whole, 1))
                found |= {step.loop: size, f"{step.loop}s": max(1, whole // size)}
            elif (step.dimension, step.loop) in own:
                found |= {name: sizes[name] for name in (step.loop, f"{step.loop}s")}
            else:
                raise ScheduleError(f"{step} needs a size: how many elements of {step.dimension} a part has")
        elif isinstance(step, Split) and isinstance(step.size, Name) and str(step) not in map(str, old):
            raise ScheduleError(f"no parameter {step.size.name} says the size of a block of {step.outer}")
    return found


def _with_names(given: Schedule, old: Schedule) -> Schedule:
    """The variables of the policy's steps where these are the same, so that the same schedule gives the same text."""
    known = {str(s): s for s in old}
    found: list[Step] = []
    for step in given:
        own = known.get(str(step))
        match step:
            case _ if own is not None:
                found.append(own)
            case Part(loop=loop):
                found.append(replace(step, names=(f"{loop}_number", f"{loop}_first", f"{loop}_end")))
            case Split(outer=outer):
                found.append(replace(step, start=f"{outer}_first", count=f"{outer}_count"))
            case Parallel(loops=loops):
                found.append(replace(step, above=tuple(f"{loop}_above" for loop in loops)))
            case _:
                found.append(step)
    return tuple(found)


def _value(e: Expr, sizes: Mapping[str, int]) -> int:
    return int(e.value) if isinstance(e, Number) else sizes[e.name] if isinstance(e, Name) else 0


def _block(split: Split, sizes: Mapping[str, int]) -> int:
    """How many elements an iteration of the outer loop goes through."""
    return split.size if isinstance(split.size, int) else sizes[split.size.name]


def _range(nest: Nest, loop: Loop, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The least and the most elements that a loop goes through at a time."""
    around = next((x for x in nest.loops if x.inner == loop.name), None)
    whole = _value(nest.algorithm.dimension(loop.dimension).extent, sizes)
    if around is None:
        return (1, whole) if nest.slice == loop.dimension else (whole, whole)
    if around.part is not None:
        size, count = sizes[around.name], sizes[f"{around.name}s"]
        last = whole - (count - 1) * size
        return min(size, last) if count > 1 else last, max(size, last) if count > 1 else last
    assert around.split is not None
    size = _block(around.split, sizes)
    return (size if around.split.tail == "shift" else 1), size


def _check_sizes(nest: Nest, sizes: Mapping[str, int]) -> None:
    """The arrays of this kernel are as large as the steps need."""
    for loop in nest.loops:
        least, _ = _range(nest, loop, sizes)
        if loop.split is not None and loop.split.tail == "shift" and least < (block := _block(loop.split, sizes)):
            raise ScheduleError(f"{loop.name} shifts blocks of {block}, and there are but {least} elements")
    arrays = [(pack.into, name, count) for pack in nest.packs for name, count in pack.layout]
    if blocks := nest.collected_blocks:
        arrays.append((nest.collect.into, blocks.name, nest.collect.most))
    for into, name, count in arrays:
        (_, most), room = _range(nest, nest[name], sizes), count * nest[name].step
        if most > room:
            raise ScheduleError(f"{name} has {most} elements, and {into} room for {room}")
    inside = [x for x in nest.inside(nest.accumulate.at) if x.kind == "unroll"]
    if math.prod(x.extent for x in inside) > WRITTEN_OUT:
        raise ScheduleError(f"more than {WRITTEN_OUT} terms are written out")


def _check_arrays(kernel: EmittedKernel) -> None:
    """A thread's stack has room for the kernel's local arrays."""
    arrays = {s.name.name: s for s in walk(kernel.program.body) if isinstance(s, LocalArray)}.values()
    if any(array.count > MOST_ELEMENTS for array in arrays):
        raise ScheduleError(f"a local array of {max(a.count for a in arrays)} elements, {MOST_ELEMENTS} at most")
    if (nbytes := sum(array.count * WIDTHS[array.dtype] for array in arrays)) > _LOCAL_BYTES:
        raise ScheduleError(f"local arrays of {nbytes} bytes, {_LOCAL_BYTES} at most")


def _extent(nest: Nest, sizes: Mapping[str, int]) -> int:
    """How many iterations `lo, hi` counts."""
    if nest.slice:
        return _value(nest.algorithm.dimension(nest.slice).extent, sizes)
    loops: Sequence[Loop] = [nest[name] for name in nest.parallel.loops]
    return math.prod(
        sizes[f"{x.name}s"] if x.part is not None else _value(nest.algorithm.dimension(x.dimension).extent, sizes)
        for x in loops
    )

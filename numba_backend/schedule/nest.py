"""An algorithm after the steps of a schedule: its loops in their order. A step is refused with the reason,
ScheduleError, if it would change the results, or if no loop program can be made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from ...hlo.errors import ScheduleError
from ...hlo.support.records import dataclass
from ..loops.expressions import ZERO, Name, Number
from .algorithm import TOTAL, Access, Algorithm, Dimension
from .steps import (
    Accumulate,
    AnyOrder,
    Band,
    Collect,
    Lanes,
    Order,
    Pack,
    Padded,
    Padding,
    Parallel,
    Part,
    Partial,
    Schedule,
    Slice,
    Split,
    Step,
    Unroll,
)

MOST_SUMS = 64
"""The most sums, each one or more registers, that are written out."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of a nest. A dimension's counter is the sum of its loops' counters."""

    name: str
    dimension: str
    extent: int = 0
    """The literal trip count; 0: as many iterations as the dimension or a part of it has."""
    split: Split | None = None
    """Its iterations have several elements each, which the loop `inner` counts."""
    inner: str = ""
    part: Part | None = None
    kind: Literal["serial", "unroll", "lanes"] = "serial"
    is_partial: bool = False
    """For a sum: unrolled iterations have sums of their own."""

    @property
    def step(self) -> int:
        """How many elements an iteration has, if that is a literal; otherwise 1."""
        return self.split.size if self.split is not None and isinstance(self.split.size, int) else 1

    @property
    def is_short(self) -> bool:
        """The last iteration may have fewer elements."""
        return self.split is not None and self.split.tail == "short"


_NO_PARALLEL, _NO_SUMS, _NO_COLLECT = Parallel(()), Accumulate(""), Collect("", "")


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops of an algorithm, outermost first, and the work at each of them."""

    algorithm: Algorithm
    loops: tuple[Loop, ...]
    parallel: Parallel = _NO_PARALLEL
    accumulate: Accumulate = _NO_SUMS
    collect: Collect = _NO_COLLECT
    packs: tuple[Pack, ...] = ()
    padded: tuple[Padded, ...] = ()
    bands: tuple[Band, ...] = ()
    padding: Padding | None = None
    slice: str = ""
    """The dimension that `lo, hi` is a range of."""
    any_order: bool = False

    def __getitem__(self, name: str) -> Loop:
        for loop in self.loops:
            if loop.name == name:
                return loop
        raise ScheduleError(f"no loop {name}: there are {', '.join(loop.name for loop in self.loops)}")

    def position(self, name: str) -> int:
        """How many loops are outside of a loop."""
        return self.loops.index(self[name])

    def outside(self, name: str) -> tuple[Loop, ...]:
        """The loops outside of a loop, and that loop."""
        return self.loops[: self.position(name) + 1]

    def inside(self, name: str) -> tuple[Loop, ...]:
        """The loops inside of a loop; all of them, inside of none ("")."""
        return self.loops[self.position(name) + 1 :] if name else self.loops

    @property
    def lanes(self) -> Loop | None:
        """The loop that becomes a vector."""
        return next((x for x in self.loops if x.kind == "lanes"), None)

    @property
    def collected_blocks(self) -> Loop | None:
        """The loop over blocks of the result inside of the loops over parts of collected sums, if there is one."""
        if not self.collect.at:
            return None
        between = self.loops[self.position(self.collect.at) + 1 : self.position(self.accumulate.at) + 1]
        return next((x for x in between if not self.is_reduced(x)), None)

    def is_reduced(self, loop: Loop) -> bool:
        """The loop is one of a sum."""
        return self.algorithm.dimension(loop.dimension).is_reduced

    def has_sums(self, loop: Loop) -> bool:
        """Each iteration of the loop has a sum of its own."""
        return loop.is_partial or not self.is_reduced(loop)


def nest_of(algorithm: Algorithm, schedule: Schedule) -> Nest:
    """The nest after all steps."""
    nest = loops_of(algorithm, schedule)
    _check_sums(nest)
    _check_collect(nest)
    _check_operands(nest)
    return nest


def loops_of(algorithm: Algorithm, schedule: Schedule) -> Nest:
    """The nest after all steps. Its loops are checked, but not where sums and copies of operands are."""
    nest = Nest(algorithm, tuple(_whole(d) for d in algorithm.dimensions))
    for step in schedule:
        nest = _after(nest, step)
    _check(nest)
    return nest


def check_steps(given: Schedule, expected: Schedule) -> None:
    """ScheduleError if a schedule has other steps than those that follow from its blocks."""
    for step in given:
        if str(step) not in map(str, expected):
            same = [str(e) for e in expected if type(e) is type(step)]
            raise ScheduleError(f"{step} does not fit these loops: {' or '.join(same) or 'they have no such step'}")
    for step in expected:
        if str(step) not in map(str, given):
            raise ScheduleError(f"these loops also have {step}")


def plain_algorithm(dimensions: Sequence[Dimension], operands: Sequence[Access] = ()) -> Algorithm:
    """Sums of any elements: it stands for the loops of a nest, where only these matter."""
    result = Access("out", Name("out", "float32*"), ())
    return Algorithm("nest", tuple(dimensions), tuple(operands), result, Name(TOTAL, "float32"), "float32", ZERO)


def _whole(dimension: Dimension) -> Loop:
    extent = dimension.extent
    return Loop(dimension.name, dimension.name, int(extent.value) if isinstance(extent, Number) else 0)


def _after(nest: Nest, step: Step) -> Nest:
    match step:
        case Part(dimension=name, loop=outer):
            loop = nest[name]
            if nest.is_reduced(loop):
                raise ScheduleError(f"{name} is summed over: threads do not share a sum")
            return _replaced(nest, loop, Loop(outer, loop.dimension, part=step, inner=name), loop)
        case Split(loop=name, outer=outer, size=size, tail=tail):
            loop = nest[name]
            if tail == "shift":
                for x in nest.loops:
                    if x.inner == name and x.split is not None and x.split.tail != "shift":
                        raise ScheduleError(f"{outer} cannot shift: a block of {x.name} may have fewer elements")
            if isinstance(size, Name):
                blocks = Loop(outer, loop.dimension, 0, step, name)
                return _replaced(nest, loop, blocks, Loop(name, loop.dimension))
            if size < 1:
                raise ScheduleError(f"blocks of {size} elements of {name}")
            if tail == "shift" and 0 < loop.extent < size:
                raise ScheduleError(f"{loop.extent} elements of {name} are no whole block of {size}")
            if tail == "shift" and nest.is_reduced(loop):
                raise ScheduleError(f"{name} is summed over: elements of a shifted block would count twice")
            count = 0 if loop.extent % size else loop.extent // size
            blocks = Loop(outer, loop.dimension, count, step, name, kind=loop.kind)
            around = tuple(replace(x, inner=outer) if x.inner == name else x for x in nest.loops)
            return _replaced(replace(nest, loops=around), loop, blocks, Loop(name, loop.dimension, size))
        case Order(loops=names):
            if sorted(names) != sorted(loop.name for loop in nest.loops):
                raise ScheduleError(f"an order has all loops once: {', '.join(loop.name for loop in nest.loops)}")
            return replace(nest, loops=tuple(nest[name] for name in names))
        case Unroll(loop=name) | Lanes(loop=name):
            loop = nest[name]
            if not loop.extent:
                raise ScheduleError(f"{name} has no literal number of iterations")
            changed = replace(loop, kind="unroll" if isinstance(step, Unroll) else "lanes")
            return _replaced(nest, loop, changed)
        case Partial(loop=name):
            loop = nest[name]
            if loop.kind != "unroll" or not nest.is_reduced(loop):
                raise ScheduleError(f"{name} is no written out loop of a sum: it has no partial sums")
            return _replaced(nest, loop, replace(loop, is_partial=True))
        case Pack():
            return replace(nest, packs=(*nest.packs, step))
        case Padded():
            return replace(nest, padded=(*nest.padded, step))
        case Padding():
            return replace(nest, padding=step)
        case Band():
            return replace(nest, bands=(*nest.bands, step))
        case AnyOrder():
            return replace(nest, any_order=True)
        case Slice(dimension=name):
            if nest.algorithm.dimension(name).is_reduced:
                raise ScheduleError(f"{name} is summed over: threads do not share a sum")
            return replace(nest, slice=name)
        case Accumulate():
            return replace(nest, accumulate=step)
        case Collect():
            if step.most < 1:
                raise ScheduleError(f"{step.into} has room for {step.most} blocks, not for one")
            return replace(nest, collect=step)
        case Parallel():
            return replace(nest, parallel=step)


def _replaced(nest: Nest, loop: Loop, *others: Loop) -> Nest:
    at = nest.loops.index(loop)
    return replace(nest, loops=(*nest.loops[:at], *others, *nest.loops[at + 1 :]))


def _check(nest: Nest) -> None:
    names = [loop.name for loop in nest.loops]
    for loop in nest.loops:
        if loop.inner and names.index(loop.inner) < names.index(loop.name):
            raise ScheduleError(f"{loop.inner} goes through a block of {loop.name}, and is outside of it")
        if loop.is_short and nest[loop.inner].kind == "unroll":
            last = nest.accumulate.at if nest.collect.most > 1 else nest.collect.at
            collects = nest.collect.at and last and nest.position(loop.name) <= nest.position(last)
            if not collects or nest.is_reduced(loop):
                raise ScheduleError(f"the last block of {loop.name} is short: {loop.inner} cannot be written out")
    if sum(loop.kind == "lanes" for loop in nest.loops) > 1:
        raise ScheduleError("one loop has lanes")
    parallel = nest.parallel.loops
    if list(parallel) != names[: len(parallel)]:
        raise ScheduleError(f"the outermost loops are parallel, not {', '.join(parallel)}")
    if parallel and nest.slice:
        raise ScheduleError("threads share the iterations of parallel loops, or a slice of a dimension")
    for loop in nest.loops:
        if loop.dimension == nest.slice and loop.split is not None and loop.split.tail == "shift":
            raise ScheduleError(f"a slice may have fewer elements than a block of {loop.name}: it cannot shift")
    for loop in nest.loops:
        is_parallel = loop.name in parallel
        if is_parallel and (nest.is_reduced(loop) or loop.split is not None):
            raise ScheduleError(
                f"{loop.name} is no part of the result's dimensions, nor one of them: threads share these"
            )
        if loop.part is not None and not is_parallel:
            raise ScheduleError(f"{loop.name} is a part that threads do not share")


def _check_operands(nest: Nest) -> None:
    terms = nest.padding.terms if nest.padding else ""
    for loop in nest.outside(nest.accumulate.at):
        if loop.dimension == terms and not (loop.split and isinstance(loop.split.size, Name)):
            raise ScheduleError(f"{loop.name} may have no iteration, since terms of padding are left out")
    for pack in nest.packs:
        _check_pack(nest, pack)
    packed = [pack.operand for pack in nest.packs]
    for access in nest.algorithm.operands:
        if access.word and access.name not in packed:
            raise ScheduleError(f"{access.name} has small numbers: it is packed into words")


def _check_sums(nest: Nest) -> None:
    at = nest.accumulate.at
    outside = nest.outside(at)
    if any(name not in [loop.name for loop in outside] for name in nest.parallel.loops):
        raise ScheduleError("sums are kept inside of the parallel loops")
    if loose := [x.name for x in nest.inside(at) if not nest.is_reduced(x) and x.kind == "serial"]:
        raise ScheduleError(f"results along {', '.join(loose)} do not lie in registers")
    many = 1
    for loop in nest.inside(at):
        many *= loop.extent if loop.kind == "unroll" and nest.has_sums(loop) else 1
    if many > MOST_SUMS:
        raise ScheduleError(f"{many} sums are written out, {MOST_SUMS} at most")
    is_part = nest.algorithm.adds or any(map(nest.is_reduced, outside))
    across = [loop.name for loop in nest.loops if loop.kind == "lanes" and nest.is_reduced(loop)]
    partial = [*across, *[loop.name for loop in nest.loops if loop.is_partial]]
    if words := [a.name for a in nest.algorithm.operands if a.word and (partial or nest.any_order)]:
        raise ScheduleError(f"words of {words[0]} are added one after the other")
    if partial and is_part and not nest.accumulate.adds:
        raise ScheduleError(f"iterations of {partial[0]} have sums of their own, which cannot begin with the result")
    if any(nest[name].extent & (nest[name].extent - 1) for name in across):
        raise ScheduleError(f"lanes along {across[0]}, a sum, are added in halves: they are a power of two")
    if across and nest.padded:
        raise ScheduleError(f"lanes along {across[0]}, a sum, are all added: none has anything else")
    in_part = nest.algorithm.adds  # a shifted iteration would add some terms twice
    for loop in outside:
        if loop.kind != "serial":
            raise ScheduleError(f"{loop.name} is outside of the sums of an iteration of {at}, and is no plain loop")
        if nest.is_reduced(loop):
            in_part = True
            if loop.split is not None and loop.split.tail == "rest":
                raise ScheduleError(f"parts of the sum over {loop.name} are whole, or the last one is short")
        elif in_part and loop.split is not None and loop.split.tail == "shift":
            raise ScheduleError(f"{loop.name} shifts inside of a part of the sum: terms would count twice")


def _check_collect(nest: Nest) -> None:
    collect, at = nest.collect.at, nest.accumulate.at
    if not collect:
        if nest.algorithm.lines:
            raise ScheduleError(f"results along {nest.algorithm.lines.dimension} are in lines: they are collected")
        if isinstance(nest.algorithm.adds, Name):
            raise ScheduleError(f"the parameter {nest.algorithm.adds} says what becomes of collected sums only")
        return
    parts = [loop for loop in nest.outside(at) if loop not in nest.outside(collect)]
    blocks = [loop for loop in parts if not nest.is_reduced(loop)]
    if len(blocks) > int(nest.collect.most > 1) or any(map(nest.is_reduced, nest.outside(collect))):
        raise ScheduleError(f"between {collect} and {at} lie the parts of a sum, and no other loops")
    for loop in blocks:
        if not loop.is_short or nest[loop.inner].kind != "unroll":
            raise ScheduleError(f"a block of {loop.name} is written out, and the last one is short: it is collected")
        if any(x.dimension == loop.dimension and x.part is None for x in nest.outside(collect)):
            raise ScheduleError(f"an iteration of {collect} has all blocks of {loop.name}, or those of a part")
    if nest.position(collect) > nest.position(at) or not nest.accumulate.adds:
        raise ScheduleError(f"an iteration of {collect} has sums that are added up, part after part")
    if any(loop.is_partial for loop in nest.loops):
        raise ScheduleError("parts of a sum are not collected")
    lines, lanes = nest.algorithm.lines, nest.lanes
    inner = [loop.inner for loop in nest.loops if loop.split is not None]
    if lines and (lanes is None or lanes.dimension != lines.dimension or lanes.name not in inner):
        raise ScheduleError(f"lanes go along {lines.dimension}, block by block: results there are in lines")


def _check_pack(nest: Nest, pack: Pack) -> None:
    access = nest.algorithm.operand(pack.operand)
    if not pack.at and (nest.bands or nest.parallel.loops):
        raise ScheduleError(f"{pack.into} is copied for all loops: there is a slice of a dimension, and no band")
    copied = [nest[name] for name, _ in pack.layout]
    here = [loop for loop in nest.inside(pack.at) if access.has(loop.dimension)]
    if sorted(x.name for x in here) != sorted(x.name for x in copied):
        raise ScheduleError(f"{pack.into} has what {_names(here)} read of {pack.operand}, not {_names(copied)}")
    if access.word and any(nest.is_reduced(loop) and loop not in nest.inside(nest.accumulate.at) for loop in copied):
        raise ScheduleError(f"{pack.into} has words of a whole sum, which is made in parts")
    if pack.at and nest.position(pack.at) > nest.position(nest.accumulate.at):
        raise ScheduleError(f"{pack.into} is copied while sums are made")
    for loop, (_, most) in zip(copied, pack.layout, strict=True):
        if loop.split is not None and not loop.extent:
            raise ScheduleError(f"{pack.into} has whole loops, and {loop.name} goes block by block")
        if loop.kind == "unroll" and any(x.inner == loop.name and x.is_short for x in nest.loops):
            raise ScheduleError(f"the last block of {loop.name} is short: it is not written out for {pack.into}")
        if loop.extent > most:
            raise ScheduleError(f"{loop.name} has {loop.extent} iterations, and {pack.into} room for {most}")


def _names(loops: Iterable[Loop]) -> str:
    return ", ".join(loop.name for loop in loops)

"""The schedule of a nest with reductions, in the steps of products (`schedule/steps.py`): the steps that the blocks of
its loops give, and the blocks of a schedule that a user gives.

A stage's loop over a reduced dimension has the name of the dimension, and from the second stage on its number: a
softmax of rows has the loops i, j, j_1 and j_2. The choice is in the steps `Split`; all other steps follow from these
and from the computation::

    Split("j", "start", 1024, "short")      columns: accumulators of a block of them are in the results
    Split("i", "rows", 4, "rest")           rows that are added together (`Unroll`), before they are added to these
    Split("j", "block", 4096, "short")      a long sum is made in blocks, and their sums are added up (`Collect`)
    Split("j_search", "searched", 512, "short")         the largest element of a row is looked for block by block
    Split("i", "together", 4, "rest")       rows, so many at a time in all stages

So a given schedule is read for its steps `Split`. It is refused if it has other steps than follow from them. Blocks in
which neighbouring results are vectors are in `nest_across.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.errors import ScheduleError
from ...hlo.ir import HloInstruction
from ...hlo.support.records import dataclass
from ..loops.expressions import Name
from ..schedule.algorithm import Dimension
from ..schedule.nest import MOST_SUMS, check_steps, loops_of, plain_algorithm
from ..schedule.steps import (
    Accumulate,
    Collect,
    Order,
    Parallel,
    Schedule,
    Slice,
    Split,
    Step,
    Unroll,
    names_of,
    size_of,
)
from .alignment import is_part
from .nest import loop_variable
from .nest_reduce import ReductionNest
from .reduce import reducer_word

COLLECTED = 1024
"""Sums of columns that have a local array, in which the sums of their blocks are added up, unless `start` is larger."""


@dataclass(frozen=True, slots=True)
class StageBlocks:
    """The blocks of one stage's loops."""

    sums: Split | None = None
    """Of the first reduced dimension: a sum is made in parts."""
    rows: Split | None = None
    """Of the last one: elements that are added together."""
    searched: Split | None = None
    """Of a row in which the largest or smallest element is looked for."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a nest's loops, and where the sums of blocks are added up, if they are."""

    stages: tuple[StageBlocks, ...]
    columns: Split | None = None
    collect: Collect | None = None
    together: Split | None = None
    """Of the rows: so many are computed at a time (`Unroll`), in all stages."""


def stage_loops(nest: ReductionNest, stage: int) -> list[str]:
    """The names of the loops of a stage over the reduced dimensions."""
    return [f"{loop_variable(d)}{suffix(stage)}" for d in nest.reduced]


def suffix(stage: int) -> str:
    """The end of the names of a stage's own loops."""
    return f"_{stage}" if stage else ""


def search_loop(nest: ReductionNest, stage: int) -> str:
    """The name of the loop in which the largest element of a row is looked for."""
    return f"{loop_variable(nest.reduced[0])}_search{suffix(stage)}"


def outer_loop(nest: ReductionNest, columns: Split | None, together: Split | None = None) -> str:
    """The innermost of the loops that all stages share; "" if there is none."""
    if split := columns or together:
        return split.outer
    shared = (*nest.parts, *nest.along)
    return loop_variable(shared[-1]) if shared else ""


def rows_of(nest: ReductionNest) -> str:
    """The loop over rows of which several may be computed at a time: those that have columns beside them, or those that
    threads share. "" if there is none."""
    rows = nest.along if nest.columns else nest.parts if len(nest.parts) == 1 else ()
    if nest.inner or nest.has_tiles or not (rows and nest.reduced):
        return ""
    if any(nest.masks_at(stage) or nest.searched_at(stage) for stage in range(nest.stages + 1)):
        return ""
    return loop_variable(rows[-1])


def steps_of(nest: ReductionNest, blocks: Blocks) -> Schedule:
    """The whole schedule of a nest with these blocks."""
    columns, together = blocks.columns, blocks.together
    outer = outer_loop(nest, columns, together)
    inner = [loop_variable(d) for d in nest.inner]
    around = [loop_variable(d) for d in (*nest.parts, *nest.along)]
    within = [around.pop()] if together else []  # the rows
    around += [split.outer for split in (together, columns) if split]
    steps: list[Step] = [split for split in (together, columns) if split]
    places: list[Step] = []
    for stage, own in enumerate(blocks.stages):
        splits = [split for split in (together, columns, own.sums, own.rows) if split]
        reduced = stage_loops(nest, stage)
        steps += [split for split in (own.sums, own.rows, own.searched) if split]
        if nest.has_main_loop(stage) and not nest.has_tiles:
            first = [own.sums.outer] if own.sums else []
            last = ([own.rows.outer], [reduced[-1]]) if own.rows else (reduced[-1:], [])
            order = [*around, *first, *reduced[:-1], *last[0], *inner, *last[1], *within]
            names = [loop_variable(d) for d in range(nest.domain.shape.rank)]
            for d, name in zip(nest.reduced, reduced, strict=True):
                names[d] = name
            if order != [x for name in names for x in (*(s.outer for s in splits if s.loop == name), name)]:
                steps.append(Order(*order))
        if own.rows:
            steps.append(Unroll(reduced[-1]))
        if nest.reductions_at(stage):
            block = own.sums.outer if own.sums and blocks.collect else outer
            places.append(Accumulate(inner[-1] if inner else block, adds=bool(own.sums and blocks.collect)))
    if blocks.collect and any(own.sums for own in blocks.stages):
        steps.append(Collect(outer, blocks.collect.into, blocks.collect.wide))
    shared: list[Step] = []
    if together and not nest.columns:
        shared = [Slice(together.loop)]  # of whole groups of rows
    elif nest.parts:
        shared = [Parallel(tuple(loop_variable(d) for d in nest.parts))]
    elif nest.inner:
        shared = [Slice(inner[0])]
    steps += [Unroll(name) for name in within]
    return (*steps, *dict.fromkeys(places), *shared)


def blocks_of(nest: ReductionNest, given: Schedule) -> Blocks:
    """The blocks of a given schedule. ScheduleError if it does not fit the nest, or would change results."""
    _check_loops(nest, given)
    splits = [step for step in given if isinstance(step, Split)]

    def block(loop: str, tail: str) -> Split | None:
        return next((s for s in splits if s.loop == loop and s.tail == tail and size_of(s)), None)

    stages = []
    for stage in range(nest.stages + 1):
        loops = stage_loops(nest, stage)
        rows, sums = (block(loops[-1], "rest"), block(loops[0], "short")) if loops else (None, None)
        searched = block(search_loop(nest, stage), "short") if nest.searched_at(stage) else None
        if nest.searched_at(stage) and searched is None:
            raise ScheduleError(f"no Split of {search_loop(nest, stage)} says how long the blocks are")
        if (rows or sums) and nest.masks_at(stage):
            raise ScheduleError(f"elements along {loops[-1]} are left out by their position: this loop has no blocks")
        if rows and nest.writes_elements(stage):
            raise ScheduleError(f"an iteration of {loops[-1]} also writes elements: it is not written out")
        if sums and rows and size_of(sums) % size_of(rows):
            raise ScheduleError(f"blocks of {size_of(sums)} elements are no multiple of {size_of(rows)}")
        if size_of(rows) > MOST_SUMS:
            raise ScheduleError(f"{size_of(rows)} elements are written out, {MOST_SUMS} at most")
        stages.append(StageBlocks(sums, rows, searched))
    collect = next((step for step in given if isinstance(step, Collect)), None)
    columns = block(loop_variable(nest.inner[0]), "short") if nest.inner else None
    together = block(rows_of(nest), "rest")
    if together and not nest.columns and nest.domain.shape.dimensions[nest.parts[0]] % size_of(together):
        raise ScheduleError(f"the rows along {together.loop} are no whole groups of {size_of(together)}")
    if size_of(together) > MOST_SUMS:
        raise ScheduleError(f"{size_of(together)} rows are written out, {MOST_SUMS} at most")
    found = Blocks(tuple(stages), columns, collect, together)
    if nest.has_tiles and splits[nest.shares_columns :]:
        raise ScheduleError("the loops go through the tiles of an array, and not in other blocks")
    if columns is None and nest.shares_columns:
        raise ScheduleError(f"no Split of {loop_variable(nest.inner[0])}: threads share it block by block")
    check_steps(given, steps_of(nest, found))
    return found


def _check_loops(nest: ReductionNest, given: Schedule) -> None:
    """The checks of all schedules, for the loops of each stage, and for those of searches."""
    groups = []
    rank = nest.domain.shape.rank
    for stage in range(nest.stages + 1):
        if nest.has_main_loop(stage):
            is_reduced = bool(nest.reductions_at(stage))
            own = dict(zip(nest.reduced, stage_loops(nest, stage), strict=True))
            groups.append([(own.get(d, loop_variable(d)), d in own and is_reduced) for d in range(rank)])
        if nest.searched_at(stage):
            groups.append([*[(loop_variable(d), False) for d in nest.kept], (search_loop(nest, stage), True)])
    used: set[Step] = set()
    for group in groups:
        dimensions = [Dimension(name, Name("size"), is_reduced) for name, is_reduced in group]
        used |= _applied(dimensions, given)
    for step in given:
        if step not in used:
            names = dict.fromkeys(name for group in groups for name, _ in group)
            raise ScheduleError(f"{step} names a loop that is not there: there are {', '.join(names)}")


def _applied(dimensions: Sequence[Dimension], given: Schedule) -> set[Step]:
    """The steps that are about loops over these dimensions, which are checked."""
    known = {d.name for d in dimensions}
    own: list[Step] = []
    for step in given:
        loops, new = names_of(step)
        if set(loops) <= known:
            own.append(step)
            if twice := known & set(new):
                raise ScheduleError(f"{min(twice)} is the name of two things")
            known |= set(new)
    loops_of(plain_algorithm(dimensions), tuple(own))
    return set(own)


def equations(nest: ReductionNest) -> str:
    """The reductions and results of the nest, without their elements: ``acc0[i] = maximum over j, out[i, j_1]``."""
    every = [loop_variable(d) for d in range(nest.domain.shape.rank)]
    found: list[str] = []
    known: set[int] = set()
    number = 0

    def add(outputs: Sequence[int], index: Sequence[str]) -> None:
        known.update(outputs)
        found.extend(f"{nest.outputs[k].name}[{', '.join(index)}]" for k in outputs)

    for stage in range(nest.stages + 1):
        own = dict(zip(nest.reduced, stage_loops(nest, stage), strict=True))
        for reduce in (*nest.reductions_at(stage), *(nest.columns if stage == nest.stages else ())):
            over = reduce.attributes.dimensions
            index = ", ".join(x for d, x in enumerate(every) if d not in over)
            names = []
            for part in range(len(reduce.operands) // 2):
                outputs = [k for k, root in enumerate(nest.roots) if _is_result(root, reduce, part)]
                known.update(outputs)
                names += [f"{nest.outputs[k].name if k >= 0 else f'acc{number}'}[{index}]" for k in outputs or [-1]]
                number += 1
            loops = ", ".join(own.get(d, every[d]) for d in over)
            found.append(f"{', '.join(names)} = {reducer_word(reduce.attributes.to_apply)} over {loops or 'nothing'}")
        add(nest.full_roots_at(stage), [own.get(d, x) for d, x in enumerate(every)])
    add([k for k in range(len(nest.roots)) if k not in known], [every[d] for d in nest.kept])
    return ", ".join(found)


def _is_result(root: HloInstruction, reduce: HloInstruction, part: int) -> bool:
    return root is reduce or (is_part(root, reduce) and root.attributes.index == part)


def room_of(nest: ReductionNest, columns: Split | None) -> int:
    """How many sums the local array has in which the sums of blocks are added up."""
    sizes = [nest.domain.shape.dimensions[d] for d in nest.inner]
    if columns and sizes:
        sizes[0] = min(sizes[0], size_of(columns))
    return max(COLLECTED, math.prod(sizes))

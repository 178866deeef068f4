"""The schedules of windows and scans: the steps that their blocks give, and the blocks of a schedule that a user gives.

    Part("row", "group", size=4)            rows of results that are computed together, a group in each iteration
    Split("j", "start", 1024, "short")      results of a row that stay in the cache together
    Part("row", "group", size=8)            rows of a scan that advance together (`Unroll`)
    Part("j", "block", size=512)            columns of a scan that advance together
    Split("s", "steps", 2, "rest")          steps of these whose elements are added first (`Unroll`)
    Split("s", "block", 128, "short")       elements of a scan of maxima or minima that are combined at a time
    Part("s", "piece", size=1040)           pieces of the rows of a scan, each of which is a row then

`row` goes through all positions along the other dimensions, `j` through those along the last one, `s` is the scanned
dimension, and `k` the elements of a window. As in `nest_schedule.py`, the other steps follow from the blocks.
"""

from __future__ import annotations

from ...hlo.errors import ScheduleError
from ...hlo.ir import HloInstruction
from ...hlo.support.records import dataclass
from ..loops.expressions import Name
from ..schedule.algorithm import Dimension
from ..schedule.nest import MOST_SUMS, check_steps, loops_of, plain_algorithm
from ..schedule.steps import Order, Parallel, Part, Schedule, Slice, Split, Unroll, size_of
from .reduce import reducer_word

ROW, COLUMN, STEP, PIECES = "row", "j", "s", "piece"


@dataclass(frozen=True, slots=True)
class WindowBlocks:
    """The blocks of a window's loops."""

    group: Part | None = None
    columns: Split | None = None
    by_rows: bool = True
    """Threads share rows, and not parts of rows."""

    def steps(self) -> Schedule:
        """The whole schedule."""
        if self.group is not None:
            return (self.group, Parallel((self.group.loop,)))
        columns = (self.columns,) if self.columns else ()
        if self.by_rows:
            return (*columns, Parallel((ROW,)))
        return (*columns, Order(*[split.outer for split in columns], ROW, COLUMN), Slice(COLUMN))


def window_blocks(given: Schedule) -> WindowBlocks:
    """The blocks of a schedule that is given for a window. ScheduleError if it does not fit."""
    loops_of(plain_algorithm([Dimension(name, Name("size")) for name in (ROW, COLUMN)]), given)
    group = next((step for step in given if isinstance(step, Part) and step.dimension == ROW), None)
    splits = [step for step in given if isinstance(step, Split) and size_of(step)]
    columns = next((s for s in splits if (s.loop, s.tail) == (COLUMN, "short")), None)
    by_rows = not any(isinstance(step, Slice) for step in given)
    if columns is None and not by_rows:
        raise ScheduleError(f"no Split of {COLUMN}: threads share it block by block")
    found = WindowBlocks(group, columns, by_rows)
    check_steps(given, found.steps())
    return found


def window_notes(instruction: HloInstruction, steps: Schedule, index: str = f"{ROW}, {COLUMN}") -> tuple[object, ...]:
    """The comments above a kernel: ``out0[row, j] = maximum over k``, and its schedule."""
    outputs = ", ".join(f"out{k}[{index}]" for k, _ in enumerate(instruction.shape.leaves()))
    over = "over k" if index == f"{ROW}, {COLUMN}" else f"along {STEP}"
    word = reducer_word(instruction.attributes.to_apply)
    return (f"{outputs} = {word} {over}", *steps)


def piece_notes(instruction: HloInstruction, piece: Part | None, shared: str, over: str) -> tuple[object, ...]:
    """The comments above a kernel of the sums of pieces, whose loop `shared` threads share."""
    outputs = ", ".join(f"sums{k}[{ROW}, {PIECES}]" for k, _ in enumerate(instruction.shape.leaves()))
    word = reducer_word(instruction.attributes.to_apply)
    return (f"{outputs} = {word} {over}", *([piece] if piece else ()), Parallel((shared,)))


def scan_steps(block: Part | Split, piece: Part | None = None, together: Split | None = None) -> Schedule:
    """The whole schedule of a scan with these blocks. `piece`: rows are cut into pieces, which are scanned like
    rows; `together`: steps along columns whose elements are added first."""
    pieces = (piece,) if piece else ()
    if isinstance(block, Split):
        return (*pieces, block, Parallel((ROW,)))
    if block.dimension == ROW:
        return (*pieces, block, Unroll(ROW), Parallel((block.loop,)))
    shared = Parallel((ROW, block.loop))
    if together is None:
        return (block, Order(ROW, block.loop, STEP, COLUMN), shared)
    return (block, together, Order(ROW, block.loop, together.outer, COLUMN, STEP), Unroll(STEP), shared)


def scan_blocks(
    own: Part | Split, given: Schedule, piece: Part | None = None, together: Split | None = None
) -> tuple[Part | Split, Split | None]:
    """The blocks of a schedule that is given for a scan which has the blocks `own`, and its steps in place of
    `together`, which it may leave out. ScheduleError if it does not fit."""
    for step in given:
        if isinstance(step, Part) and isinstance(own, Part) and step.dimension == own.dimension and step.size:
            found: Part | Split = step
            break
        if isinstance(step, Split) and isinstance(own, Split) and (step.loop, step.tail) == (own.loop, own.tail):
            found = step
            break
    else:
        raise ScheduleError(f"these loops have a step such as {own}")
    if together is not None:
        outer = together.outer
        together = next((s for s in given if isinstance(s, Split) and s.outer == outer and size_of(s) > 1), None)
    check_steps(given, scan_steps(found, piece, together))
    if size_of(together) > MOST_SUMS:
        raise ScheduleError(f"{size_of(together)} steps are written out, {MOST_SUMS} at most")
    size = size_of(found)
    if isinstance(found, Part) and found.dimension == ROW and size > MOST_SUMS:
        raise ScheduleError(f"{size} rows are written out, {MOST_SUMS} at most")
    if isinstance(found, Split) and (size % 16 or not size):
        raise ScheduleError(f"blocks of {size} elements are no multiple of 16, a vector")
    return found, together

"""Where a walk is: the counters of the open loops, and the offsets of elements there.

An element's offset is the sum over the open loops of counter times stride. Where a turn begins, the part of it that is
known then gets a name (`to`, `from_a`), so that inner loops add only their own counters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..loops.expressions import ZERO, Expr, Number, times
from ..loops.writer import Writer
from .algorithm import Access
from .bands import Limits
from .nest import Loop, Nest


class OpenLoops:
    """The loops that are open, by their names: `starts` has the first element of a loop's turn."""

    def __init__(self, nest: Nest, writer: Writer) -> None:
        self.nest, self.algorithm, self.writer = nest, nest.algorithm, writer
        self.starts: dict[str, Expr] = {}
        self.limits: dict[str, Limits] = {d.name: (ZERO, d.extent) for d in self.algorithm.dimensions}
        """By dimension, in the open part: its first element, and the one after its last."""
        self.counts: dict[str, Expr] = {}
        """By loop: its turns, where it goes through a turn of another."""
        self.known: dict[str, tuple[Expr, frozenset[str]]] = {}
        """By array: the sum of what some loops add to its elements' offset, and these loops."""

    def limits_of(self, loop: Loop) -> Limits:
        """What a loop goes through: a turn of another loop, or its dimension."""
        count = self.counts.get(loop.name)
        return self.limits[loop.dimension] if count is None else (ZERO, count)

    def turns(self, loop: Loop) -> Expr:
        """How many elements a loop goes through."""
        low, high = self.limits_of(loop)
        return high - low

    def counter(self, dimension: str) -> Expr:
        """What the open loops make of a dimension's counter."""
        total: Expr = ZERO
        for loop in self.nest.loops:
            if loop.dimension == dimension and loop.name in self.starts:
                total = total + self.starts[loop.name]
        return total

    def offset_from(self, total: Expr, access: Access, loops: Iterable[Loop]) -> Expr:
        """`total`, and what some loops add to it."""
        for loop in loops:
            turn = self.starts.get(loop.name)
            stride = ZERO if turn is None else access.stride(loop.dimension)
            if turn is not None and stride is not ZERO:
                total = total + scaled(turn, stride)
        return total

    def offset(self, access: Access) -> Expr:
        """Of the element at the open loops' counters."""
        start, known = self.known.get(access.name, (ZERO, frozenset()))
        return self.offset_from(start, access, (x for x in self.nest.loops if x.name not in known))

    def name_start(self, access: Access, name: str) -> None:
        """Give a name to what the open loops make of an array's offset."""
        start, known = self.known.get(access.name, (ZERO, frozenset()))
        for dimension, _ in access.strides:
            loops = (x for x in self.nest.loops if x.dimension == dimension and x.name not in known)
            start = self.offset_from(start, access, loops)
        self.known[access.name] = self.writer.assign(name, start), frozenset(self.starts)

    def each(self, loops: Sequence[Loop], counts: Sequence[Expr], act: Callable[[], None]) -> None:
        """``for p in range(k): for j in range(16): ...``; unrolled loops are written out."""
        if not loops:
            act()
            return
        (loop, *others), (count, *more) = loops, counts
        if loop.kind == "unroll":
            for turn in range(literal(count, loop)):
                self.starts[loop.name] = Number(turn)
                self.each(others, more, act)
        else:
            with self.writer.neighbours(loop.name, count) as variable:
                self.starts[loop.name] = variable
                self.each(others, more, act)
        del self.starts[loop.name]

    def written_out(self, loops: Sequence[Loop]) -> Iterator[None]:
        """All turns of some unrolled loops; sets their counters."""
        counts = [range(literal(self.turns(x), x)) for x in loops]
        for turns in itertools.product(*counts):
            for loop, turn in zip(loops, turns, strict=True):
                self.starts[loop.name] = Number(turn)
            yield
        for loop in loops:
            self.starts.pop(loop.name, None)


def names_of(loops: Iterable[Loop]) -> frozenset[str]:
    return frozenset(loop.name for loop in loops)


def scaled(turn: Expr, stride: Expr) -> Expr:
    if isinstance(turn, Number) and isinstance(stride, Number):
        return Number(int(turn.value) * int(stride.value))
    return times(turn, stride)


def literal(count: Expr, loop: Loop) -> int:
    assert isinstance(count, Number), f"{loop.name} is written out"
    return int(count.value)

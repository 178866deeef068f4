"""Track the open loops of a walk: their counters, and the offsets of elements there.

An element's offset is the sum over the open loops of counter times stride. At the beginning of an iteration, the part
that is known then gets a name (`to`, `from_a`), so that inner loops add only their own counters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..loops.expressions import ZERO, Expr, Name, Number, minimum, times
from ..loops.writer import Writer
from .algorithm import Access
from .bands import Limits
from .nest import Loop, Nest

Place = tuple[int, ...]
"""The iterations of unrolled loops."""


class OpenLoops:
    """The loops that are open, by their names: `starts` has the first element of a loop's iteration."""

    def __init__(self, nest: Nest, writer: Writer) -> None:
        self.nest, self.algorithm, self.writer = nest, nest.algorithm, writer
        self.starts: dict[str, Expr] = {}
        self.limits: dict[str, Limits] = {d.name: (ZERO, d.extent) for d in self.algorithm.dimensions}
        """By dimension, in the open part: its first element, and the one after its last."""
        self.numbers: dict[str, Expr] = {}
        """By loop, if parameters give the length and the number of its iterations: the number of the iteration."""
        self.counts: dict[str, Expr] = {}
        """By loop: its trip count, if it goes through one iteration of another loop."""
        self.known: dict[str, tuple[Expr, frozenset[str]]] = {}
        """By array: the sum of the terms that some loops add to its elements' offset, and these loops."""
        self.bases: dict[tuple[str, Place], Expr] = {}
        """By array and iterations of unrolled loops: the offset that `name_bases` has named."""
        self.based: dict[str, Sequence[Loop]] = {}
        """By array: these loops."""
        self.rests: dict[str, tuple[Expr, frozenset[str]]] = {}
        """By array: the sum of the terms that other loops add to these offsets, and all loops with terms in one or the
        other."""
        self.packed_steps: dict[tuple[str, str], Name] = {
            (pad.operand, x.name): pad.step
            for pad in nest.padded
            for x in nest.loops
            if pad.step is not None and nest.lanes is not None and x.inner == nest.lanes.name
        }

    def limits_of(self, loop: Loop) -> Limits:
        """The range of a loop: one iteration of another loop, or its dimension."""
        count = self.counts.get(loop.name)
        if count is None and any(x.inner == loop.name and x.split is not None and x.extent for x in self.nest.loops):
            count = Number(loop.extent)
        return self.limits[loop.dimension] if count is None else (ZERO, count)

    def trips(self, loop: Loop) -> Expr:
        """How many elements a loop goes through."""
        low, high = self.limits_of(loop)
        return high - low

    def iterations_of(self, loops: Iterable[Loop]) -> Place:
        """The iterations of unrolled loops that are being written."""
        indices = [self.starts[loop.name] for loop in loops]
        return tuple([int(index.value) for index in indices if isinstance(index, Number)])

    def counter(self, dimension: str) -> Expr:
        """A dimension's counter, computed from the open loops."""
        total: Expr = ZERO
        for loop in self.nest.loops:
            if loop.dimension == dimension and loop.name in self.starts:
                total = total + self.starts[loop.name]
        return total

    def offset_from(self, total: Expr, access: Access, loops: Iterable[Loop]) -> Expr:
        """`total`, and the terms that some loops add to it."""
        tables: dict[str, Name] = {}
        for loop in loops:
            index = self.starts.get(loop.name)
            stride = ZERO if index is None else access.stride(loop.dimension)
            if index is None or stride is ZERO:
                continue
            table = access.table(loop.dimension)
            if table is not None:
                tables[loop.dimension] = table
            else:
                total = total + scaled(index, self.packed_steps.get((access.name, loop.name)) or stride)
        for dimension, table in tables.items():
            total = total + table[self.counter(dimension)]
        return total

    def known_of(self, access: Access) -> tuple[Expr, frozenset[str]]:
        """The part of an array's offset that has a name, and the loops in it."""
        return self.known.get(access.name) or (access.start, frozenset())

    def _opened(self, access: Access) -> frozenset[str]:
        """The open loops that may be part of a named offset. Of a dimension with a table, all or none."""
        closed = {x.dimension for x in self.nest.loops if x.name not in self.starts and access.table(x.dimension)}
        return names_of(x for x in self.nest.loops if x.name in self.starts and x.dimension not in closed)

    def offset(self, access: Access) -> Expr:
        """The offset of the element at the open loops' counters."""
        start, known = self.known_of(access)
        if access.name in self.based:
            start = self.bases[access.name, self.iterations_of(self.based[access.name])]
            rest, known = self.rests.get(access.name) or (ZERO, known | self._of_bases(access))
            start = start + rest
        return self.offset_from(start, access, (x for x in self.nest.loops if x.name not in known))

    def _of_bases(self, access: Access) -> frozenset[str]:
        """The loops that are in the offsets that `name_bases` has named."""
        dimensions = {x.dimension for x in self.based[access.name]}
        return names_of(x for x in self.nest.loops if x.dimension in dimensions)

    def name_start(self, access: Access, name: str) -> None:
        """Name the part of an array's offset that the open loops determine. A table is read when all its loops are
        open."""
        start, known = self.known_of(access)
        opened = self._opened(access)
        for dimension, _ in access.strides:
            loops = [x for x in self.nest.loops if x.dimension == dimension and x.name in opened - known]
            start = self.offset_from(start, access, loops)
        self.known[access.name] = self.writer.assign(name, start), opened

    def name_rest(self, access: Access, name: str) -> None:
        """Name the sum of the open loops' terms, which is added to the offsets that `name_bases` has named, or to an
        array's start."""
        if access.name not in self.based:
            self.name_start(access, name)
            return
        known, opened = self.known[access.name][1] | self._of_bases(access), self._opened(access)
        rest = self.offset_from(ZERO, access, [x for x in self.nest.loops if x.name in opened - known])
        self.rests[access.name] = self.writer.assign(name, rest), known | opened

    def name_bases(self, access: Access, loops: Sequence[Loop]) -> None:
        """Name an array's offsets in the iterations of unrolled loops, where a table has them or a block may be short.
        Elements that a short block lacks are its last one again. ::

            base0 = from_a + rows[row]
            base1 = from_a + rows[row + minimum(1, some - 1)]
        """
        self.based.pop(access.name, None)
        mine = [x for x in loops if access.has(x.dimension)]
        if not any(access.table(x.dimension) or isinstance(self.counts.get(x.name), Name) for x in mine):
            return
        start, known = self.known_of(access)
        others = [x for x in self.nest.loops if x.name not in known and any(x.dimension == y.dimension for y in mine)]
        for indices in itertools.product(*[range(self.unrolled_trips(x)) for x in mine]):
            for loop, index in zip(mine, indices, strict=True):
                count = self.counts.get(loop.name)
                at: Expr = Number(index)
                self.starts[loop.name] = minimum(at, count - 1) if index and isinstance(count, Name) else at
            name = f"base{'_'.join(map(str, indices))}"
            stem = name if len(self.algorithm.operands) == 1 else f"{name}_{access.name}"
            self.bases[access.name, indices] = self.writer.assign(stem, self.offset_from(start, access, others))
        for loop in mine:
            del self.starts[loop.name]
        self.based[access.name] = mine

    def each(self, loops: Sequence[Loop], counts: Sequence[Expr], act: Callable[[], None]) -> None:
        """``for p in range(k): for j in range(16): ...``; an unrolled loop `i` is one over `i_index` here."""
        if not loops:
            act()
            return
        (loop, *others), (count, *more) = loops, counts
        name = f"{loop.name}_index" if loop.kind == "unroll" else loop.name
        writer, step = self.writer, loop.step
        with writer.loop(name, 0, count, step=step) if step > 1 else writer.neighbours(name, count) as variable:
            self.starts[loop.name] = variable
            self.each(others, more, act)
        del self.starts[loop.name]

    def unrolled_trips(self, loop: Loop) -> int:
        """How many iterations of a loop are unrolled: all of them, if it may be short."""
        count = self.counts.get(loop.name)
        return int(count.value) if isinstance(count, Number) else loop.extent

    def written_out(self, loops: Sequence[Loop]) -> Iterator[None]:
        """All iterations of some unrolled loops; sets their counters."""
        counts = [range(self.unrolled_trips(x)) for x in loops]
        for indices in itertools.product(*counts):
            for loop, index in zip(loops, indices, strict=True):
                self.starts[loop.name] = Number(index)
            yield
        for loop in loops:
            self.starts.pop(loop.name, None)


def names_of(loops: Iterable[Loop]) -> frozenset[str]:
    return frozenset(loop.name for loop in loops)


def scaled(index: Expr, stride: Expr) -> Expr:
    if isinstance(index, Number) and isinstance(stride, Number):
        return Number(int(index.value) * int(stride.value))
    return times(index, stride)

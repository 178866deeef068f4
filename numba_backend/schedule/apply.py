"""From a nest to a loop program: walks the loops from the outside in.

    # c[i, j] = sum over p: total + a[i, p] * b[p, j]
    # Part(dimension='j', loop='strip')                             the schedule, as data
    # ...
    panel = local_array(4096, float32)                              Pack
    sums0 = local_array(16, float32)                                Accumulate, Unroll, Lanes
    ...
    for item in range(lo, hi):                                      Parallel, Part
        ...
        for column in range(left, right, 16):                       Split
            first = minimum(column, right - 16)                     "shift"
            panel[p * 16 + j] = x1[from_b + p * b0 + j]
            for row in range(top, below, 6):
                i = minimum(row, below - 6)
                sums0[j], ..., sums5[j] = 0
                for p in range(k):
                    factor0 = x0[from_a + p * a1]
                    for j in range(16):
                        sums0[j] = sums0[j] + factor0 * panel[p * 16 + j]
                    ...
                out[to + j] = sums0[j]

An element's offset is the sum over the open loops of counter times stride. Where a turn begins, the part of it that is
known then gets a name (`to`, `from_a`), so that inner loops add only their own counters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

from ..emit.kernel import HI, LO
from ..loops.expressions import ZERO, Expr, Name, Number, minimum, sum_of, times
from ..loops.writer import Writer
from .algorithm import Access, Algorithm
from .bands import Limits, OperandBand, rows_of_band
from .nest import Loop, Nest, nest_of
from .steps import Pack, Schedule

Place = tuple[int, ...]
"""Of a sum among those that are written out: the turn of each unrolled loop."""


def write(algorithm: Algorithm, schedule: Schedule, writer: Writer) -> None:
    """Write the body of the kernel. ScheduleError for a schedule that does not fit."""
    Application(nest_of(algorithm, schedule), writer).write()


class Application:
    """The walk. What is open is known by loop: `starts` has the first element of its turn."""

    def __init__(self, nest: Nest, writer: Writer) -> None:
        self.nest, self.algorithm, self.writer = nest, nest.algorithm, writer
        self.starts: dict[str, Expr] = {}
        self.limits: dict[str, Limits] = {d.name: (ZERO, d.extent) for d in self.algorithm.dimensions}
        """By dimension, in the open part: its first element, and the one after its last."""
        self.counts: dict[str, Expr] = {}
        """By loop: its turns, where it goes through a turn of another."""
        self.known: dict[str, tuple[Expr, frozenset[str]]] = {}
        """By array: the sum of what some loops add to its elements' offset, and these loops."""
        self.copies: dict[str, tuple[Name, Pack]] = {}
        """By operand: where its packed elements are."""
        inside = nest.inside(nest.accumulate.at)
        self.unrolled = [x for x in inside if x.kind == "unroll" and not nest.is_reduced(x)]
        self.lanes = next((x for x in nest.loops if x.kind == "lanes"), None)
        self.narrowed: dict[str, Limits] = {}
        """By loop: the turns that a band leaves of it."""
        algorithm = nest.algorithm
        self.operand_bands = [
            OperandBand(writer, band, algorithm, algorithm.operand(band.array))
            for band in nest.bands
            if band.array != algorithm.result.name
        ]

    # ---- loops

    def write(self) -> None:
        """The whole kernel."""
        nest, writer = self.nest, self.writer
        kind = self.algorithm.total_type
        self.local = {
            pack.into: writer.local_array(pack.into, math.prod(most for _, most in pack.layout), kind)
            for pack in nest.packs
        }
        width = self.lanes.extent if self.lanes else 1
        self.sums: dict[Place, Name] = {}
        for place in self._places():
            name = "sums" + ("_".join(map(str, place)) or "0")
            self.sums[place] = writer.local_array(name, width, kind)
        if nest.slice:
            self.limits[nest.slice] = LO, HI
            self._loops(nest.loops)
            return
        with writer.loop("item", LO, HI) as item:
            self._take_apart(item)
            for band in self.operand_bands:
                start, _ = self.known.get(band.access.name, (ZERO, frozenset()))
                band.test_outside(start, self.limits[band.access.strides[-2][0]])
            around = nest.parallel.loops[-1]
            self._inside(nest.inside(around), around)

    def _take_apart(self, item: Name) -> None:
        """Which turn of each parallel loop an item is."""
        writer, parallel = self.writer, self.nest.parallel
        rest = item
        whole: list[Loop] = []
        for name, above in reversed(list(zip(parallel.loops, parallel.above, strict=True))):
            loop = self.nest[name]
            if loop.part is None:
                count = self.limits[name][1]
                further = writer.assign(above, rest // count)
                self.starts[name] = writer.assign(name, rest - times(further, count))
                whole.append(loop)
            else:
                count, size = Name(f"{name}s"), Name(name)
                number, low, high = loop.part.names
                further = writer.assign(above, rest // count)
                turn = writer.assign(number, rest - times(further, count))
                first = writer.assign(low, times(turn, size))
                end = writer.assign(high, first + size)
                with writer.if_(turn.eq(count - 1)):
                    writer.assign(end, self.limits[loop.dimension][1])
                self.limits[loop.dimension] = first, end
            rest = further
        if whole:
            for access in (*self.algorithm.operands, self.algorithm.result):
                start = self._sum(ZERO, access, whole)
                self.known[access.name] = writer.assign(f"start_{access.name}", start), _names(whole)

    def _inside(self, loops: Sequence[Loop], around: str) -> None:
        """What is in a turn of the loop `around`."""
        self._narrow_rows(around)
        for pack in self.nest.packs:
            if pack.at == around:
                self._pack(pack)
        if around == self.nest.accumulate.at:
            self._accumulate(loops)
        else:
            self._loops(loops)

    def _loops(self, loops: Sequence[Loop]) -> None:
        """The next plain loop with all others inside; statements, if there is none."""
        loop = next((x for x in loops if x.kind == "serial"), None)
        if loop is None:
            self._update(loops)
            return
        rest = [x for x in loops if x is not loop]
        low, high = self.narrowed.get(loop.name) or self._limits_of(loop)
        if loop.split is None:
            self._turn(loop, rest, loop.name, low, high, 1)
            return
        size, start, inner = loop.split.size, loop.split.start or loop.name, loop.inner
        if loop.split.tail == "shift":
            last = self._limits_of(loop)[1] - size
            with self.writer.loop(loop.name, low, high, step=size) as turn:
                self.starts[loop.name] = self.writer.assign(start, minimum(turn, last))
                self.counts[inner] = Number(size)
                self._inside(rest, loop.name)
            del self.starts[loop.name]
        elif loop.split.tail == "short":
            with self.writer.loop(start, low, high, step=size) as turn:
                self.starts[loop.name] = turn
                self.counts[inner] = self.writer.assign(loop.split.count, minimum(Number(size), high - turn))
                self._inside(rest, loop.name)
            del self.starts[loop.name]
        else:
            first = next(x for x in self.nest.loops if x.split is not None and x.split.tail == "rest")
            name = "whole" if loop is first else f"whole_{loop.name}"
            whole = self.writer.assign(name, low + (high - low) // Number(size) * Number(size))
            self.counts[inner] = Number(size)
            self._turn(loop, rest, start, low, whole, size)
            self.counts[inner] = Number(1)
            self._turn(loop, rest, start, whole, high, 1)

    def _turn(self, loop: Loop, rest: Sequence[Loop], name: str, low: Expr, high: Expr, step: int) -> None:
        bounds = (high,) if low is ZERO and step == 1 else (low, high)
        with self.writer.loop(name, *bounds, step=step) as turn:
            self.starts[loop.name] = turn
            self._inside(rest, loop.name)
        del self.starts[loop.name]

    def _limits_of(self, loop: Loop) -> Limits:
        """What a loop goes through: a turn of another loop, or its dimension."""
        count = self.counts.get(loop.name)
        return self.limits[loop.dimension] if count is None else (ZERO, count)

    def turns(self, loop: Loop) -> Expr:
        """How many elements a loop goes through."""
        low, high = self._limits_of(loop)
        return high - low

    # ---- bands

    def _narrow_rows(self, around: str) -> None:
        """Of the turn of a loop over columns: the rows that have elements of the result's bands."""
        result = self.algorithm.result
        for band in self.nest.bands:
            rows, columns = (name for name, _ in result.strides[-2:])
            loop = self.nest[around]
            if band.array == result.name and loop.dimension == columns and loop.split is not None:
                inner = next(x for x in self.nest.inside(around) if x.dimension == rows)
                first, width = self.starts[around], loop.split.size
                self.narrowed[inner.name] = rows_of_band(self.writer, band, self.limits[rows], first, width)

    def _narrow_sums(self, loops: Sequence[Loop]) -> None:
        """Of a turn whose sums are in registers: the terms that are in the operands' bands."""
        for band in self.operand_bands:
            rows, columns = (name for name, _ in band.access.strides[-2:])
            inner = next(x for x in loops if x.dimension == columns)
            count = next((self.turns(x) for x in loops if x.dimension == rows), Number(1))
            assert isinstance(count, Number)
            row = self._counter(rows)
            self.narrowed[inner.name] = band.limits(row, int(count.value), self._counter(columns), self.turns(inner))

    def _counter(self, dimension: str) -> Expr:
        """What the open loops make of a dimension's counter."""
        total: Expr = ZERO
        for loop in self.nest.loops:
            if loop.dimension == dimension and loop.name in self.starts:
                total = total + self.starts[loop.name]
        return total

    # ---- offsets

    def _sum(self, total: Expr, access: Access, loops: Iterable[Loop]) -> Expr:
        """`total`, and what some loops add to it."""
        for loop in loops:
            turn = self.starts.get(loop.name)
            stride = ZERO if turn is None else access.stride(loop.dimension)
            if turn is not None and stride is not ZERO:
                total = total + _scaled(turn, stride)
        return total

    def offset(self, access: Access) -> Expr:
        """Of the element at the open loops' counters."""
        start, known = self.known.get(access.name, (ZERO, frozenset()))
        return self._sum(start, access, (x for x in self.nest.loops if x.name not in known))

    def name_start(self, access: Access, name: str) -> None:
        """Give a name to what the open loops make of an array's offset."""
        start, known = self.known.get(access.name, (ZERO, frozenset()))
        for dimension, _ in access.strides:
            loops = (x for x in self.nest.loops if x.dimension == dimension and x.name not in known)
            start = self._sum(start, access, loops)
        self.known[access.name] = self.writer.assign(name, start), frozenset(self.starts)

    def element(self, access: Access) -> Expr:
        """An operand's element, in the type of sums."""
        copy = self.copies.get(access.name)
        if copy is None:
            return self.algorithm.held(access.pointer[self.offset(access)])
        array, pack = copy
        return array[self._place(pack)]

    # ---- copies

    def _place(self, pack: Pack) -> Expr:
        """The offset of an element in a copy."""
        steps: dict[str, int] = {}
        step = 1
        for name, most in reversed(pack.layout):
            steps[name], step = step, step * most
        total: Expr = ZERO
        for loop in self.nest.loops:
            if loop.name in steps:
                total = total + _scaled(self.starts[loop.name], Number(steps[loop.name]))
        return total

    def _pack(self, pack: Pack) -> None:
        """Along memory: the layout's last loop is the innermost one if it goes from neighbour to neighbour, and the
        outermost one otherwise. ::

            if b1 == 1:                                          else:
                for p in range(k):                                   for j in range(16):
                    for j in range(16):                                  for p in range(k):
                        panel[p * 16 + j] = x1[from_b + p * b0 + j]          panel[...] = x1[from_b + ... + j * b1]
        """
        writer = self.writer
        access = self.algorithm.operand(pack.operand)
        outer = dict(self.known)
        self.copies.pop(access.name, None)
        self.name_start(access, f"from_{access.name}")
        array = self.local[pack.into]
        loops = [self.nest[name] for name, _ in pack.layout]
        stride = access.stride(loops[-1].dimension)

        def copy(access: Access, order: Sequence[Loop], counts: Sequence[Expr]) -> None:
            self._each(order, counts, lambda: writer.store(
                array, self._place(pack), self.algorithm.held(access.pointer[self.offset(access)])
            ))  # fmt: skip

        counts = [self.turns(loop) for loop in loops]
        turned = (*loops[-1:], *loops[:-1]), (*counts[-1:], *counts[:-1])
        if isinstance(stride, Number):
            copy(access, *((loops, counts) if stride == Number(1) else turned))
        else:
            with writer.if_(stride.eq(1)):
                copy(access.with_neighbours(loops[-1].dimension), loops, counts)
            with writer.else_():
                copy(access, *turned)
        if self.lanes in loops:
            self._fill(pack, array, loops, counts)
        self.known = outer
        self.copies[access.name] = array, pack
        for band in self.operand_bands:
            if band.access is not access:
                count = counts[0]
                for other in counts[1:]:
                    count = times(count, other)
                band.test_packed(array, count)

    def _fill(self, pack: Pack, array: Name, loops: Sequence[Loop], counts: Sequence[Expr]) -> None:
        """Zeros in lanes that a short turn does not have."""
        writer, lanes = self.writer, self.lanes
        assert lanes is not None
        count, all_lanes = self.turns(lanes), Number(lanes.extent)
        if count == all_lanes:
            return
        others = [(loop, turns) for loop, turns in zip(loops, counts, strict=True) if loop is not lanes]

        def fill() -> None:
            with writer.loop(lanes.name, count, all_lanes) as lane:
                self.starts[lanes.name] = lane
                writer.store(array, self._place(pack), self.algorithm.zero)
            del self.starts[lanes.name]

        with writer.if_(count < all_lanes):
            self._each([loop for loop, _ in others], [turns for _, turns in others], fill)

    def _each(self, loops: Sequence[Loop], counts: Sequence[Expr], act: Callable[[], None]) -> None:
        """``for p in range(k): for j in range(16): ...``; unrolled loops are written out."""
        if not loops:
            act()
            return
        (loop, *others), (count, *more) = loops, counts
        if loop.kind == "unroll":
            for turn in range(_literal(count, loop)):
                self.starts[loop.name] = Number(turn)
                self._each(others, more, act)
        else:
            with self.writer.neighbours(loop.name, count) as variable:
                self.starts[loop.name] = variable
                self._each(others, more, act)
        del self.starts[loop.name]

    # ---- sums

    def _places(self) -> list[Place]:
        """Those of the sums that a turn has now, as `counts` say."""
        counts = [self.counts.get(x.name, Number(x.extent)) for x in self.unrolled]
        return list(itertools.product(*[range(_literal(c, x)) for c, x in zip(counts, self.unrolled, strict=True)]))

    def _accumulate(self, loops: Sequence[Loop]) -> None:
        algorithm, writer, result = self.algorithm, self.writer, self.algorithm.result
        outer = dict(self.known)
        self.name_start(result, "to")
        parts = [x for x in self.nest.loops if self.nest.is_reduced(x) and x.name in self.starts]
        number: Expr = ZERO
        for part in parts:
            number = number + self.starts[part.name]
        adds = self.nest.accumulate.adds

        def clear() -> None:
            with self._lane(self.has_zeros or self.sums_lanes) as lane:
                for place in self._places():
                    writer.store(self.sums[place], lane, algorithm.zero)

        def load(total: Name, lane: Expr) -> None:
            writer.store(total, lane, algorithm.held(result.pointer[self.offset(result)]))

        if adds or not (parts or algorithm.adds):
            clear()
        elif algorithm.adds:
            self._for_each_sum(load)
        else:
            with writer.if_(number.eq(0)):
                clear()
            with writer.else_():
                self._for_each_sum(load)
        for access in algorithm.operands:
            if access.name not in self.copies:
                self.name_start(access, f"from_{access.name}")
        self._narrow_sums(loops)
        self._loops(loops)
        if parts and adds and not algorithm.adds:
            with writer.if_(number.eq(0)):
                self._write_sums()
            with writer.else_():
                self._write_sums(adds=True)
        else:
            self._write_sums(adds and algorithm.adds)
        self.known = outer

    def _write_sums(self, adds: bool = False) -> None:
        """`adds`: to what is there."""
        writer, result = self.writer, self.algorithm.result

        def store(total: Expr) -> None:
            at, value = self.offset(result), self.algorithm.finished(total)
            writer.store(result.pointer, at, sum_of(result.pointer[at], value) if adds else value)

        for place in self._places():
            self._put(place)
            if self.sums_lanes:
                assert self.lanes is not None
                total, half = self.sums[place], self.lanes.extent // 2
                while half:  # halves onto halves: few additions wait for others
                    with writer.loop("part", half) as part:
                        writer.store(total, part, sum_of(total[part], total[part + half]))
                    half //= 2
                store(total[ZERO])
            else:
                with self._lane(whole=False) as lane:
                    store(self.sums[place][lane])
        self._put(None)

    @property
    def sums_lanes(self) -> bool:
        """Lanes are parts of one sum."""
        return self.lanes is not None and self.nest.is_reduced(self.lanes)

    @property
    def has_zeros(self) -> bool:
        """There are zeros in lanes that a short turn does not have, as all operands with lanes are packed. So all lanes
        can be computed."""
        lanes = self.lanes
        return lanes is None or all(a.name in self.copies for a in self.algorithm.operands if a.has(lanes.dimension))

    def _lane(self, whole: bool | None = None) -> _Lane:
        return _Lane(self, self.has_zeros if whole is None else whole)

    def _for_each_sum(self, act: Callable[[Name, Expr], None]) -> None:
        for place in self._places():
            self._put(place)
            with self._lane() as lane:
                act(self.sums[place], lane)
        self._put(None)

    def _put(self, place: Place | None) -> None:
        """Set the counters of the unrolled loops."""
        for number, loop in enumerate(self.unrolled):
            if place is None:
                self.starts.pop(loop.name, None)
            else:
                self.starts[loop.name] = Number(place[number])

    def _update(self, loops: Sequence[Loop]) -> None:
        """The innermost statements. What all lanes share is read once, just before its first use; what lanes have of
        their own is read once in their loop."""
        lanes = self.lanes
        at = len(loops) if lanes is None else loops.index(lanes)
        outer, inner = loops[:at], loops[at + 1 :]
        own = [a for a in self.algorithm.operands if lanes is not None and a.has(lanes.dimension)]
        shared = [a for a in self.algorithm.operands if a not in own]
        read: dict[tuple[str, Place], Expr] = {}
        terms = [x for x in loops if self.nest.is_reduced(x)]

        def elements(accesses: Sequence[Access]) -> dict[str, Expr]:
            """The operands' elements at the counters, which are read if that has not been done."""
            for access in accesses:
                key = self._key(access, loops)
                if key not in read:
                    kind, others = ("element", own) if access in own else ("factor", shared)
                    stem = kind if len(others) == 1 else f"{kind}_{access.name}"
                    place = "_".join(map(str, key[1])) or "0"
                    is_once = access in own and all(access.has(x.dimension) for x in inner)
                    value = self.element(access)
                    read[key] = value if is_once else self.writer.assign(stem + place, value)
            return {access.name: read[self._key(access, loops)] for access in accesses}

        def update() -> None:
            """One sum: all terms that are written out."""
            total = self.sums[tuple(int(str(self.starts[x.name])) for x in self.unrolled)]
            lane = ZERO if lanes is None else self.starts[lanes.name]
            value: Expr = total[lane]
            for _ in self._turns([x for x in inner if x in terms]):
                value = self.algorithm.updated(value, {**elements(shared), **elements(own)}, self.nest.any_order)
            self.writer.store(total, lane, value)

        for _ in self._turns(outer):
            for _ in self._turns(inner):
                elements(shared)
            with self._lane():
                for _ in self._turns([x for x in inner if x not in terms]):
                    update()
            for key in [key for key in read if key[0] in [a.name for a in own]]:
                del read[key]

    def _key(self, access: Access, loops: Sequence[Loop]) -> tuple[str, Place]:
        """Which of an operand's elements the counters of written out loops mean."""
        mine = [x for x in loops if x.kind == "unroll" and access.has(x.dimension)]
        return access.name, tuple(int(str(self.starts[x.name])) for x in mine)

    def _turns(self, loops: Sequence[Loop]) -> Iterator[None]:
        """All turns of some unrolled loops; sets their counters."""
        counts = [range(_literal(self.turns(x), x)) for x in loops]
        for turns in itertools.product(*counts):
            for loop, turn in zip(loops, turns, strict=True):
                self.starts[loop.name] = Number(turn)
            yield
        for loop in loops:
            self.starts.pop(loop.name, None)


class _Lane:
    """The loop over lanes; 0 without lanes."""

    def __init__(self, application: Application, whole: bool) -> None:
        self._application, self._whole = application, whole
        self._stack = ExitStack()

    def __enter__(self) -> Expr:
        application, lanes = self._application, self._application.lanes
        if lanes is None:
            return ZERO
        count = Number(lanes.extent) if self._whole else application.turns(lanes)
        lane = self._stack.enter_context(application.writer.neighbours(lanes.name, count))
        application.starts[lanes.name] = lane
        return lane

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._application.lanes is not None:
            self._application.starts.pop(self._application.lanes.name, None)


def _names(loops: Iterable[Loop]) -> frozenset[str]:
    return frozenset(loop.name for loop in loops)


def _scaled(turn: Expr, stride: Expr) -> Expr:
    if isinstance(turn, Number) and isinstance(stride, Number):
        return Number(int(turn.value) * int(stride.value))
    return times(turn, stride)


def _literal(count: Expr, loop: Loop) -> int:
    assert isinstance(count, Number), f"{loop.name} is written out"
    return int(count.value)

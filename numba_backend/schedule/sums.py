"""The step `Accumulate`: keep sums in registers, from their initial value until they are written."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext

from ..loops.expressions import ONE, ZERO, Expr, Name, Number, Unary, all_of, call, minimum, sum_of, times
from ..loops.overlapping import each_of
from ..loops.writer import cast
from .algorithm import Access, Lines
from .copies import Copies
from .nest import Loop
from .offsets import OpenLoops, Place


class Sums:
    """The sums of an iteration, each in an array of its own; LLVM makes registers of the arrays.  A single sum without
    lanes is a variable, and LLVM makes partial sums of it. For several sums, the number of partial sums would depend on
    the number of sums: the sum of a row would depend on how many rows are computed together.
    """

    def __init__(self, here: OpenLoops, copies: Copies) -> None:
        self.here, self.copies, self.nest, self.writer = here, copies, here.nest, here.writer
        self.algorithm, self.lanes = here.algorithm, here.nest.lanes
        inside = self.nest.inside(self.nest.accumulate.at)
        self.unrolled: list[Loop] = [x for x in inside if x.kind == "unroll" and self.nest.has_sums(x)]
        self.results: list[Loop] = [x for x in self.unrolled if not x.is_partial]
        self.arrays: dict[Place, Name] = {}
        """The arrays, by iterations of the unrolled loops."""
        width = self.lanes.extent if self.lanes else 1
        kind, places = self.algorithm.total_type, self._places()
        self.is_variable: bool = self.lanes is None and len(places) == 1 and not self.nest.collect.at
        for place in places:
            name = "sums" + ("_".join(map(str, place)) or "0")
            new = self.writer.variable(name, kind) if self.is_variable else self.writer.local_array(name, width, kind)
            self.arrays[place] = new
        self.width = width
        self.singles: dict[Place, Name] = {}
        """Lanes along a sum: the sums of terms that are added one by one, so that vectors stay in registers."""
        if self.nest.collect.at:
            self.collected_width: int = 1 if self.along_lanes else width
            self.collected_type: str = "float64" if self.nest.collect.wide else kind
            many = self.collected_width * len(self.arrays)
            room = many * self.nest.collect.most
            self.collected: Name = self.writer.local_array(self.nest.collect.into, room, self.collected_type)
            self.blocks: Loop | None = self.nest.collected_blocks
            self.of_block: int = many // self.blocks.step if self.blocks else 0
            """Collected elements for each element of a block."""
            if self.along_lanes:
                self.singles = {p: self.writer.variable(f"single{'_'.join(map(str, p))}", kind) for p in self.arrays}
                self.vectors: Name = self.writer.local_array("vectors", width * len(self.arrays), kind)
                self.firsts: Name = self.writer.local_array("firsts", len(self.arrays), kind)

    def _places(self) -> list[Place]:
        """The sums of the current iteration, as `counts` say."""
        trips = [x.extent if x.is_partial else self.here.unrolled_trips(x) for x in self.unrolled]
        return list(itertools.product(*map(range, trips)))

    def begin(self) -> None:
        """Begin the sums with zero, or with the values that are written."""
        algorithm, writer, result = self.algorithm, self.writer, self.algorithm.result
        self.parts: Expr = ZERO
        """0 in the first part of the sum."""
        reduced = [x for x in self.nest.loops if self.nest.is_reduced(x) and x.name in self.here.starts]
        for part in reduced:
            self.parts = self.parts + self.here.numbers.get(part.name, self.here.starts[part.name])
        self.is_part: bool = bool(reduced)

        def clear() -> None:
            with self._lane(self.has_zeros or self.along_lanes) as lane:
                for place in self._places():
                    self._set(place, lane, algorithm.zero)
            for single in self.singles.values():
                writer.assign(single, algorithm.zero)

        def load(place: Place, lane: Expr) -> None:
            self._set(place, lane, algorithm.held(result.pointer[self.here.offset(result)]))

        if self.nest.accumulate.adds or not (reduced or algorithm.adds):
            clear()
        elif algorithm.adds:
            self._for_each(load, whole=False)
        else:
            with writer.if_(self.parts.eq(0)):
                clear()
            with writer.else_():
                self._for_each(load, whole=False)
        if self.copies.corrections:
            self._for_each(lambda place, lane: self._set(
                place, lane, call("subtract", self._get(place, lane), self.copies.correction())
            ))  # fmt: skip

    def end(self) -> None:
        """Write the sums, or add them to the written values."""
        if self.nest.collect.at:
            self._collect()
            return
        adds = self.nest.accumulate.adds
        if self.is_part and adds and not self.algorithm.adds:
            with self.writer.if_(self.parts.eq(0)):
                self._write()
            with self.writer.else_():
                self._write(adds=True)
        else:
            self._write(adds and bool(self.algorithm.adds))

    def _collect(self) -> None:
        """``totals[32 + j] = sums1[j]`` for the first part of the sums, ``totals[32 + j] = totals[32 + j] + sums1[j]``
        for the others."""
        if self.along_lanes:
            self._collect_rows()
            return
        writer, totals = self.writer, self.collected
        start = writer.assign("place", self._place_of_block()) if self.blocks else None

        def put(*, adds: bool) -> None:
            for number, total in enumerate(self.arrays.values()):
                with self._lane(whole=True) as lane:
                    at, value = lane + self.width * number, self._collected(total[lane])
                    at = at if start is None else start + at
                    writer.store(totals, at, sum_of(totals[at], value) if adds else value)

        if not self.is_part:
            put(adds=False)
            return
        with writer.if_(self.parts.eq(0)):
            put(adds=False)
        with writer.else_():
            put(adds=True)

    def _collect_rows(self) -> None:
        """Lanes are parts of a sum: add them, and what they are to the sum of all parts. A loop goes through the sums,
        since LLVM takes long for that many reductions written out. ::

            for j in lanes(16):
                vectors[j] = sums0[j]
            firsts[0] = single0
            ...
            for each in range(24):
                value = firsts[each]
                for j in range(16):
                    value = reduce_add(value, vectors[each * 16 + j])
                totals[each] = totals[each] + value
        """
        writer, totals, count = self.writer, self.collected, len(self.arrays)
        start = writer.assign("place", self._place_of_block()) if self.blocks else ZERO
        for number, (place, total) in enumerate(self.arrays.items()):
            with self._lane(whole=True) as lane:
                writer.store(self.vectors, lane + self.width * number, total[lane])
            writer.store(self.firsts, Number(number), self.singles[place])
        if self.is_part:
            with writer.if_(self.parts.eq(0)), writer.loop("each", count) as each:
                writer.store(totals, start + each, Number(0.0) if self.nest.collect.wide else self.algorithm.zero)
        with writer.loop("each", count) as each:
            value = writer.assign("value", self.firsts[each])
            with self._lane(whole=True) as lane:
                writer.assign(value, call("reduce_add", value, self.vectors[times(each, Number(self.width)) + lane]))
            at, added = start + each, self._collected(value)
            writer.store(totals, at, sum_of(totals[at], added) if self.is_part else added)

    def _collected(self, value: Expr) -> Expr:
        """A sum in the type of the collected sums."""
        return value if value.type == self.collected_type else cast(self.collected_type, value)

    def _place_of_block(self) -> Expr:
        """Where the collected sums of an iteration of `blocks` begin."""
        assert self.blocks is not None
        low, _ = self.here.limits_of(self.blocks)
        return times(self.here.starts[self.blocks.name] - low, Number(self.of_block))

    def write_collected(self) -> None:
        """Write the collected sums that belong to the result, or to an iteration of `blocks`. ::

            for r in range(some):
                place = to + r * n
                source = r * 32
                for j in range(wide):
                    out[place + j] = totals[source + j]
        """
        writer, here, result, algorithm = self.writer, self.here, self.algorithm.result, self.algorithm
        source: Expr = ZERO
        with ExitStack() as stack:
            lines = stack.enter_context(self._line(algorithm.lines)) if algorithm.lines else None
            for loop in self.unrolled:
                here.starts[loop.name] = index = stack.enter_context(writer.loop(loop.name, here.trips(loop)))
                source = source * loop.extent + index
            wide = here.trips(self.lanes) if self.lanes and not self.along_lanes else Number(1)
            at, source = here.offset(result), source * self.collected_width
            if self.blocks:
                source = source + self._place_of_block()
            if lines:
                at, source, wide = at + lines[0], source + lines[1], lines[2]
            place, source = writer.assign("place", at), writer.assign("source", source)
            stride = ONE if lines or self.lanes is None or self.along_lanes else result.stride(self.lanes.dimension)

            def put(lane: Expr, adds: bool = False) -> None:
                at, value = place + lane * stride, algorithm.finished(self.collected[source + lane])
                writer.store(result.pointer, at, sum_of(result.pointer[at], value) if adds else value)

            def add() -> None:
                with nullcontext(ZERO) if wide == Number(1) else writer.loop("lane", wide) as lane:
                    put(lane, adds=True)

            if isinstance(algorithm.adds, Name):
                with writer.if_(algorithm.adds.ne(0)):
                    add()
                with writer.else_():
                    each_of(writer, wide, put, most=self.width)
            elif algorithm.adds:
                add()
            else:
                each_of(writer, wide, put, most=self.width)
        for loop in self.unrolled:
            del here.starts[loop.name]

    def take_apart(self, lines: Lines, first: Expr) -> None:
        """Give names to the digits of the first lane's number."""
        self.digits: list[Name] = []
        for d in range(len(lines.digits) - 1, 0, -1):
            size = lines.digits[d][0]
            rest = self.writer.assign(f"rest{d}", first // size)
            self.digits.insert(0, self.writer.assign(f"digit{d}", first - times(rest, size)))
            first = rest
        self.digits.insert(0, self.writer.assign("digit0", first))

    @contextmanager
    def _line(self, lines: Lines) -> Iterator[tuple[Expr, Expr, Expr]]:
        """The loop over the lines of the lanes: where the results begin, the first lane's number, and how many. ::

            lane0 = 0
            at1 = digit1
            at0 = digit0
            while lane0 < 32:
                until = minimum(c1 - at1, 32 - lane0)
                length = minimum(m1 - at1, until)
                if not at0 < m0:
                    length = 0
                ...
                lane0 += until
                at1 = 0
                at0 += 1
        """
        writer, many = self.writer, self.width
        lane = writer.assign("lane0", 0)
        at = [writer.assign(f"at{d}", digit) for d, digit in enumerate(self.digits)]
        cells, counts = zip(*lines.digits, strict=True)
        with writer.while_(lane < many):
            until = writer.assign("until", minimum(cells[-1] - at[-1], Number(many) - lane))
            length = writer.assign("length", minimum(counts[-1] - at[-1], until))
            if at[:-1]:
                inside = all_of([digit < count for digit, count in zip(at[:-1], counts, strict=False)])
                with writer.if_(Unary("not", inside)):
                    writer.assign(length, 0)
            start: Expr = at[0]
            for digit, count in zip(at[1:], counts[1:], strict=True):
                start = times(start, count) + digit
            yield writer.assign("line_start", start), lane, length
            writer.augment(lane, "+", until)
            if len(at) == 1:
                writer.assign(lane, many)
            writer.assign(at[-1], 0)
            for digit in at[-2:-1]:
                writer.augment(digit, "+", 1)
            for d in range(len(at) - 2, 0, -1):
                with writer.if_(at[d].eq(cells[d])):
                    writer.assign(at[d], 0)
                    writer.augment(at[d - 1], "+", 1)

    def _write(self, adds: bool = False) -> None:
        """`adds`: to the stored values."""
        writer, result = self.writer, self.algorithm.result

        def store(total: Expr) -> None:
            at, value = self.here.offset(result), self.algorithm.finished(total)
            writer.store(result.pointer, at, sum_of(result.pointer[at], value) if adds else value)

        for place in self._places():
            if any(index for index, loop in zip(place, self.unrolled, strict=True) if loop.is_partial):
                continue
            self._put(place)
            self._add_partial(place)
            if self.along_lanes:
                assert self.lanes is not None
                total, half = self.arrays[place], self.lanes.extent // 2
                while half:  # halves onto halves: few additions wait for others
                    with writer.loop("part", half) as part:
                        writer.store(total, part, sum_of(total[part], total[part + half]))
                    half //= 2
                store(total[ZERO])
            else:
                with self._lane(whole=False) as lane:
                    store(self._get(place, lane))
        self._put(None)

    def _add_partial(self, place: Place) -> None:
        """Add the partial sums of a result to the first of them."""
        own = [self.unrolled.index(loop) for loop in self.results]
        same = [at for at in self.arrays if all(at[n] == place[n] for n in own)]
        if len(same) > 1:
            with self._lane(self.has_zeros or self.along_lanes) as lane:
                self._set(place, lane, functools.reduce(sum_of, [self._get(at, lane) for at in same]))

    def _variable(self, place: Place) -> Name | None:
        """The variable of a sum that is no array, or of the terms that are added one by one."""
        if self.singles and self.here.counts.get(self.lanes.name if self.lanes else "") == Number(1):
            return self.singles[place]
        return self.arrays[place] if self.is_variable else None

    def _get(self, place: Place, lane: Expr) -> Expr:
        return self._variable(place) or self.arrays[place][lane]

    def _set(self, place: Place, lane: Expr, value: Expr) -> None:
        variable = self._variable(place)
        if variable is not None:
            self.writer.assign(variable, value)
        else:
            self.writer.store(self.arrays[place], lane, value)

    @property
    def along_lanes(self) -> bool:
        """Lanes are parts of one sum."""
        return self.lanes is not None and self.nest.is_reduced(self.lanes)

    @property
    def has_zeros(self) -> bool:
        """Lanes that a short iteration does not have contain zeros, as all operands with lanes are packed, or arbitrary
        values. So all lanes can be computed."""
        lanes = self.lanes
        if lanes is None:
            return True
        wide = {*self.copies.packed, *(pad.operand for pad in self.nest.padded)}
        return all(a.name in wide for a in self.algorithm.operands if a.has(lanes.dimension))

    @contextmanager
    def _lane(self, whole: bool | None = None) -> Iterator[Expr]:
        """The loop over lanes; 0 without lanes. `whole`: over all of them, also in a short iteration."""
        here, lanes = self.here, self.lanes
        if lanes is None:
            yield ZERO
            return
        count = Number(lanes.extent) if (self.has_zeros if whole is None else whole) else here.trips(lanes)
        loop = nullcontext(ZERO) if count == Number(1) else here.writer.neighbours(lanes.name, count)
        with loop as lane:
            here.starts[lanes.name] = lane
            yield lane
        here.starts.pop(lanes.name, None)

    def _for_each(self, act: Callable[[Place, Expr], None], whole: bool | None = None) -> None:
        for place in self._places():
            self._put(place)
            with self._lane(whole) as lane:
                act(place, lane)
        self._put(None)

    def _put(self, place: Place | None) -> None:
        """Set the counters of the unrolled loops."""
        for number, loop in enumerate(self.unrolled):
            if place is None:
                self.here.starts.pop(loop.name, None)
            else:
                self.here.starts[loop.name] = Number(place[number])

    def update(self, loops: Sequence[Loop]) -> None:
        """The innermost statements. Values that all lanes share are read once, just before their first use; values that
        differ between lanes are read once in the lanes' loop."""
        lanes = self.lanes
        at = len(loops) if lanes is None else loops.index(lanes)
        outer, inner = loops[:at], loops[at + 1 :]
        own = [a for a in self.algorithm.operands if lanes is not None and a.has(lanes.dimension)]
        shared = [a for a in self.algorithm.operands if a not in own]
        read: dict[tuple[str, Place], Expr] = {}
        terms = [x for x in loops if not self.nest.has_sums(x)]

        def elements(accesses: Sequence[Access]) -> dict[str, Expr]:
            """The operands' elements at the counters, which are read if that has not been done."""
            for access in accesses:
                key = self._key(access, loops)
                if key not in read:
                    kind, others = ("element", own) if access in own else ("factor", shared)
                    stem = kind if len(others) == 1 else f"{kind}_{access.name}"
                    place = "_".join(map(str, key[1])) or "0"
                    is_once = all(access.has(x.dimension) for x in (inner if access in own else loops))
                    value = self.copies.element(access)
                    read[key] = value if is_once else self.writer.assign(stem + place, value)
            return {access.name: read[self._key(access, loops)] for access in accesses}

        def add() -> None:
            """One sum: all terms that are written out."""
            place = self.here.iterations_of(self.unrolled)
            lane = ZERO if lanes is None else self.here.starts[lanes.name]
            value = self._get(place, lane)
            for _ in self.here.written_out([x for x in inner if x in terms]):
                value = self.algorithm.updated(value, {**elements(shared), **elements(own)}, self.nest.any_order)
            self._set(place, lane, value)

        known = dict(self.here.known)
        if self.here.based:
            for access in self.algorithm.operands:
                if access.name not in self.copies.packed:
                    self.here.name_rest(access, f"at_{access.name}")
        for _ in self.here.written_out(outer):
            for _ in self.here.written_out(inner):
                elements(shared)
            with self._lane():
                for _ in self.here.written_out([x for x in inner if x not in terms]):
                    add()
            for key in [key for key in read if key[0] in [a.name for a in own]]:
                del read[key]
        self.here.known = known
        self.here.rests.clear()

    def _key(self, access: Access, loops: Sequence[Loop]) -> tuple[str, Place]:
        """Which of an operand's elements the counters of written out loops mean."""
        return access.name, self.here.iterations_of(x for x in loops if x.kind == "unroll" and access.has(x.dimension))

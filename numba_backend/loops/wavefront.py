"""Run the rows of a table as the lanes of vectors, each a column behind the row above it (a wavefront).

    for t in range(n):             for t in range(0, whole, 16):
        a = x[t]                       ...                                             # `a` and `left` of 16 rows
        left = t + 1                   for s in range(m + 15):
        for j in range(m):     ->          for r in lanes(16):
            left = f(a, left, y[j])            above[r] = select(r > 0, kept[maximum(r - 1, 0)], y[minimum(s, m - 1)])
            y[j] = left                    for r in lanes(16):
                                               new = f(rows[r], lefts[r], above[r])
                                               kept[r] = new
                                               lefts[r] = select(r <= s, new, lefts[r])
                                           y[maximum(s - 15, 0)] = kept[15]

In step `s`, lane `r` is at column ``s - r`` of its row. The element above is in the lane before it, which computed it
in the step before, so that a row is never in memory. Before its first column a lane keeps its variables; after its last
one, nothing reads them. The last lane's elements alone are stored: the rows are all in the same place. It stores to the
first column until it has come there, when the first lane has already read it.

Every element has the same operations in the same order. That is right if each element that is stored is read from the
row above, at its place, or as the last one of its own row, and if nothing outside of the inner loop stores there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...hlo.support.records import dataclass
from ..machine import target_machine
from .affine import Affine, Indices, constant_difference
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, call, maximum, minimum
from .lanes import WIDTHS, NotLanes, check_kind, left_neighbour
from .rewrite import Substitution, rewritten, with_names
from .statements import Assign, Block, Comment, For, LocalArray, Statement, Store, walk
from .straight_lines import Access, Ranges, accesses, assigned, forget, has_fixed_ends
from .typing import pointee, pointer_to

WORD = 4
"""Bytes of an element for which there are enough lanes; elements may be shorter."""
LEAST_LANES = 8
"""With fewer, several rows at once in scalar operations (jam.py) are as fast."""

_LANE = Name("r")


@dataclass(frozen=True, slots=True)
class Rows:
    """A loop over rows: straight-line code, a loop over the columns, and more straight-line code."""

    outer: For
    before: Block
    inner: For
    after: Block
    blocks: For | None = None
    """The loop over blocks of columns around the inner loop, if it is written so, to look for interrupts."""

    @property
    def straight(self) -> Block:
        """All the straight-line code."""
        return [*self.before, *self.inner.body, *self.after]


class _Refused(Exception):
    """The rows have no such form."""


def in_wavefront(
    rows: Rows, sizes: Mapping[str, int], ranges: Ranges, fresh: Callable[[str], str], *, is_read: bool
) -> tuple[Block, Expr] | None:
    """The statements that compute as many rows as are a multiple of the lanes, and the first row that is left; None if
    the rows have no such form, or are too few. `is_read`: variables of the last row are read later, so that a row must
    be left."""
    lanes = target_machine().register_bytes // WORD
    counts = [ranges[loop.variable.name].count for loop in (rows.outer, rows.inner)]
    if lanes < LEAST_LANES or any(count is None or count < 2 * lanes for count in counts):
        return None
    if not has_fixed_ends(rows.inner, sizes):
        return None
    try:
        return _Wavefront(rows, sizes, ranges, fresh, lanes).written(is_read)
    except (_Refused, NotLanes):
        return None


@dataclass(frozen=True, slots=True)
class _Moving:
    """Values that go from each lane to the next: an array's elements, which the first lane loads."""

    here: Name
    """The values in the lanes, in this step."""
    before: Name
    """The values of the step before, or those that were stored then."""
    pointer: Name
    index: Expr
    """Where the first lane loads, in terms of the inner loop's counter."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A variable of each row."""

    lanes: Name
    first: Name
    """Its values before the first column, in memory."""
    value: Expr
    """Such a value, in the names of the loop over rows."""
    array: str | None
    """The array whose element left of a column it is, if any."""


class _Wavefront:
    def __init__(
        self, rows: Rows, sizes: Mapping[str, int], ranges: Ranges, fresh: Callable[[str], str], lanes: int
    ) -> None:
        self._rows, self._ranges, self._fresh, self._lanes = rows, ranges, fresh, lanes
        self._row, self._column = rows.outer.variable, rows.inner.variable
        own = assigned(rows.straight)
        self._own = {self._row.name, self._column.name, *own}
        self._indices = Indices(sizes, ranges, dict.fromkeys(own))
        self._outside: list[Access] = list(accesses(rows.before, self._indices))
        forget(rows.inner.body, self._indices)
        self._stores = {s.pointer.name: s for s in rows.inner.body if isinstance(s, Store)}
        if len(self._stores) != sum(isinstance(s, Store) for s in rows.inner.body) or not self._stores:
            raise _Refused
        self._set_before = assigned(rows.before)
        self._definitions: dict[str, Expr] = {}
        """The indices that the columns' code assigns to names, in terms of the counters."""
        self._moving: dict[tuple[str, str], _Moving] = {}
        self._kept: dict[str, _Kept] = {}
        self._now: dict[str, Name] = {}
        """The names that a column has assigned so far."""
        self._stored: dict[str, Name] = {}
        """What it has stored so far, by array."""
        self._arrays: Block = []
        self._steps: Block = []
        self._store_indices = self._indices_of_stores()
        self._sources = {name: self._array("kept", pointee(s.pointer.type)) for name, s in self._stores.items()}
        """What the lanes stored in the step before, by array."""

    def _indices_of_stores(self) -> dict[str, Affine]:
        """All rows must store to the same places, one after the other."""
        known = dict(self._indices.known)
        found: dict[str, Affine] = {}
        for access in accesses(self._rows.inner.body, self._indices):
            if not access.is_store:
                continue
            index = access.index
            if index is None or index.get(self._row.name, 0) or index.get(self._column.name, 0) != 1:
                raise _Refused
            found[access.array] = index
        self._indices.known = known
        for access in self._outside:
            place = found.get(access.array)
            if place is not None and self._meets(access.index, place):
                raise _Refused
        return found

    def _meets(self, outside: Affine | None, place: Affine) -> bool:
        """True if code outside of the columns may use one of their places."""
        gap = None if outside is None else constant_difference(outside, place, self._column.name)
        return gap is None or self._ranges[self._column.name].has(gap)

    def _array(self, stem: str, kind: str) -> Name:
        name = Name(self._fresh(stem), pointer_to(kind))
        if kind == "bool" or WIDTHS.get(kind, WORD + 1) > WORD:
            raise _Refused
        self._arrays.append(LocalArray(name, self._lanes, kind))
        return name

    # A column, as lanes

    def _read(self) -> None:
        for statement in self._rows.inner.body:
            match statement:
                case Assign(targets=(target,), values=(value,)):
                    index = self._indices.of(value) if value.type == "int64" else None
                    self._indices.known[target.name] = index
                    if index is not None:
                        self._definitions[target.name] = self._in_counters(value)
                        continue
                    name = Name(self._fresh(target.name), target.type)
                    self._steps.append(Assign((name,), (self._value(value),)))
                    self._now[target.name] = name
                case Store(pointer=pointer, value=value):
                    kind = pointee(pointer.type)
                    whole = self._value(value)
                    name = Name(self._fresh("stored"), kind)
                    self._steps.append(Assign((name,), (whole if whole.type == kind else Call(kind, (whole,)),)))
                    self._stored[pointer.name] = name
                case Comment():
                    self._steps.append(statement)
                case _:
                    raise _Refused

    def _in_counters(self, e: Expr) -> Expr:
        return with_names(e, self._definitions)

    def _value(self, e: Expr) -> Expr:
        return rewritten(e, self._in_lane)

    def _in_lane(self, e: Expr) -> Expr | None:
        if isinstance(e, Name):
            return self._variable(e)
        return self._load(e) if isinstance(e, Load) else None

    def _variable(self, name: Name) -> Expr:
        found = self._now.get(name.name)
        if found is not None:
            return found
        if name.name not in self._own:
            return name
        if name.name not in self._set_before or name.name in self._definitions:
            raise _Refused  # a counter as a number
        return self._of_row(name)

    def _of_row(self, value: Expr, array: str | None = None) -> Expr:
        """A value that each row has before its first column."""
        kept = self._kept.get(value.text)
        if kept is None:
            lanes, first = self._array("lanes", value.type), self._array("rows", value.type)
            kept = self._kept[value.text] = _Kept(lanes, first, value, array)
        return kept.lanes[_LANE]

    def _load(self, load: Load) -> Expr:
        index = self._indices.of(load.index)
        if index is None:
            raise _Refused
        array, by_row, by_column = load.pointer.name, index.get(self._row.name, 0), index.get(self._column.name, 0)
        where = self._in_counters(load.index)
        in_first = Load(load.pointer, with_names(where, {self._column.name: self._rows.inner.start or ZERO}))
        place = self._store_indices.get(array)
        if place is None:
            if not by_column:
                return self._of_row(in_first)
            if by_row or any(a.is_store and a.array == array for a in self._outside):
                raise _Refused
            return self._moved(load, where)
        gap = constant_difference(index, place)
        if gap == 0:
            return self._stored.get(array) or self._moved(load, where)
        if gap != -1:
            raise _Refused
        return self._of_row(in_first, array)

    def _moved(self, load: Load, where: Expr) -> Expr:
        key = load.pointer.name, where.text
        found = self._moving.get(key)
        if found is None:
            kind = pointee(load.pointer.type)
            before = self._sources.get(load.pointer.name) or self._array("moved", kind)
            found = self._moving[key] = _Moving(self._array("above", kind), before, load.pointer, where)
        return found.here[_LANE]

    # The statements

    def written(self, is_read: bool) -> tuple[Block, Expr]:
        """See `in_wavefront`."""
        self._read()
        outer, inner, lanes = self._rows.outer, self._rows.inner, self._lanes
        start = outer.start or ZERO
        first = Name(self._fresh("first"))
        count = maximum(outer.stop - start - int(is_read), ZERO)
        whole = start + (count - Binary("&", count, Number(lanes - 1)))
        step = Name(self._fresh("step"))
        steps = self._step(step)
        body = [*self._rows_begin(), For(step, inner.start, inner.stop + (lanes - 1), 1, steps)]
        loop = For(outer.variable, start, first, lanes, body)
        for each in walk(body):
            if isinstance(each, For):
                check_kind(each)
        return [*self._arrays, Assign((first,), (whole,)), loop], first

    def _rows_begin(self) -> Block:
        """The code before the columns, of all rows, and their variables in the lanes."""
        own = {self._row.name: self._row + _LANE}
        names = Substitution(own, {}, lambda name: self._fresh(name) if name in self._own else name)
        body = names.block(self._rows.before)
        body += [Store(kept.first, _LANE, names.expression(kept.value)) for kept in self._kept.values()]
        result: Block = [For(_LANE, None, Number(self._lanes), 1, body)]
        result += [self._in_lanes([Store(k.lanes, _LANE, k.first[_LANE])]) for k in self._kept.values()]
        return result

    def _step(self, step: Name) -> Block:
        """All lanes, each at its column."""
        inner, last = self._rows.inner, self._lanes - 1
        start = inner.start or ZERO
        at, to, most = (Name(self._fresh(stem)) for stem in ("at", "to", "most"))
        result: Block = [Assign((at,), (minimum(step, inner.stop - 1),))]
        for moving in self._moving.values():
            loaded = Load(moving.pointer, self._at(moving.index, at))
            value = call("select", _LANE > 0, moving.before[left_neighbour(_LANE)], loaded)
            result.append(self._in_lanes([Store(moving.here, _LANE, value)]))
        result.append(Assign((most,), (step - start,)))
        active = Binary("<=", _LANE, most)
        changed: list[Statement] = []
        for text, kept in self._kept.items():
            new = self._now.get(text) if kept.array is None else self._stored[kept.array]
            if new is not None:
                changed.append(Store(kept.lanes, _LANE, call("select", active, new, kept.lanes[_LANE])))
        changed += [Store(self._sources[name], _LANE, stored) for name, stored in self._stored.items()]
        result.append(self._in_lanes([*self._steps, *changed]))
        own = [m for m in self._moving.values() if m.before not in self._sources.values()]
        result += [self._in_lanes([Store(m.before, _LANE, m.here[_LANE])]) for m in own]
        result.append(Assign((to,), (maximum(step - last, start),)))
        for name, store in self._stores.items():
            index = self._at(self._in_counters(store.index), to)
            result.append(Store(store.pointer, index, self._sources[name][last]))
        return result

    def _at(self, index: Expr, column: Expr) -> Expr:
        """An index of the array, at a column."""
        found = with_names(index, {self._column.name: column})
        if any(name in self._own for name in found.names):
            raise _Refused  # one that is computed for each row
        return found

    def _in_lanes(self, body: Sequence[Statement]) -> For:
        return For(_LANE, None, Number(self._lanes), 1, list(body), "lanes")

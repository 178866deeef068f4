"""Run several iterations of a loop at once whose inner loop waits for itself (unroll and jam).

    for t in range(n):                       for t in range(0, rest, 4):
        a = x[t]                                 a0 = x[t]
        for j in range(m):                       a1 = x[t + 1]; ...
            a = f(a, y[j])           ->          for j in range(m):
            y[j] = a                                 a0 = f(a0, y[j])
                                                     y[j] = a0
                                                     a1 = f(a1, y[j])
                                                     y[j] = a1; ...
                                             for t in range(rest, n): ...

In tables that are filled row by row, each element waits for the one to its left, and a processor computes one at a
time: its latency is the time of the loop. Here it computes elements of four rows at a time. Every element has the same
operations in the same order.

That is right if no statement of a later row that now runs before one of an earlier row uses memory that the latter
stores, or stores memory that it uses: the indices are sums of counters with known factors (affine.py), or the array is
only read. Variables must not go from row to row.

What comes after the inner loop, as where a search has ended, runs for all rows after it, so it may use only arrays that
the rows do not store to before, and store only to arrays that they do not use before.

If all rows are stored in one place, they can be lanes of vectors (wavefront.py); then this is for the rows that are
left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...hlo.support.lazy import lazy_property
from .affine import Indices, Range, constant_difference
from .carried_loads import with_carried_loads
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, call
from .rewrite import Substitution
from .statements import Assign, Block, Comment, For, If, Return, Statement, Store, expressions_of, names_of
from .straight_lines import (
    Access,
    Ranges,
    accesses,
    accesses_around,
    assigned,
    forget,
    has_fixed_ends,
    is_straight,
    loads_of,
    range_of,
    read_first,
    targets,
    with_changed_loops,
)
from .vectorized_calls import LONG
from .wavefront import Rows, in_wavefront

ROWS = 4
"""Iterations at once: with eight, the variables are more than the registers."""
MOST_OPERATIONS = 64
"""Operations in the inner loop's body; a longer one has enough to do while it waits, and takes long to compile."""
OF_FUNCTION = 16
"""Operations that an elementary function counts as."""
LEAST_INNER, LEAST_OUTER = 8, 2 * ROWS

_ASSOCIATIVE = frozenset(("add", "multiply", "minimum", "maximum", "bit_and", "bit_or", "bit_xor"))
"""A variable that only adds up is a sum, of which LLVM makes vectors."""


def jammed(block: Block, sizes: Mapping[str, int], fresh: Callable[[str], str]) -> Block:
    """The statements with such loops changed. `sizes`: the numbers that arguments stand for; `fresh`: a new name like
    a given one."""
    return with_changed_loops(block, sizes, _Jam(sizes, fresh, block).loop)


class _Jam:
    def __init__(self, sizes: Mapping[str, int], fresh: Callable[[str], str], program: Block) -> None:
        self._sizes, self._fresh, self._program = sizes, fresh, program

    @lazy_property
    def _reads(self) -> Counter[str]:
        """How often the whole program reads names."""
        return Counter(names_of(self._program))

    def loop(self, loop: For, ranges: Ranges, inner: Callable[[], Block]) -> Block:
        """What computes a loop: see `with_changed_loops`."""
        rows = _rows_of(loop)
        if rows is not None and self._pays(rows, ranges):
            inside = self._inside(rows, ranges)
            indices = Indices(self._sizes, inside, dict.fromkeys(assigned(rows.straight)))
            before, within = accesses_around(rows.before, rows.inner.body, indices)
            if variable_waits(rows.inner.body) or _memory_waits(within, rows.inner.variable.name, inside):
                front: Block = []
                found = None
                if rows.blocks is None and not any(_uses_memory(s) for s in rows.after):
                    found = in_wavefront(rows, self._sizes, inside, self._fresh, is_read=self._is_read(rows))
                if found is not None:
                    front, first = found
                    rows = replace(rows, outer=replace(rows.outer, start=first))
                if _are_independent(rows, before, within, inside):
                    return front + self._written(rows, inside)
                if front:
                    return [*front, rows.outer]
        return [replace(loop, body=inner())]

    def _inside(self, rows: Rows, ranges: Ranges) -> Ranges:
        """The counters in the inner loop."""
        for loop in (rows.blocks, rows.inner):
            if loop is not None:
                ranges = {**ranges, loop.variable.name: range_of(loop, self._sizes, ranges)}
        return ranges

    def _pays(self, rows: Rows, ranges: Ranges) -> bool:
        outer = ranges[rows.outer.variable.name].count
        inner = range_of(rows.blocks or rows.inner, self._sizes, ranges).count
        if outer is None or outer < LEAST_OUTER or inner is None or inner < LEAST_INNER:
            return False
        wholes = [e for s in rows.inner.body for e in expressions_of(s)]
        parts = [part for whole in wholes for part in whole.walk()]
        operations = sum(isinstance(part, (Binary, Call, Load)) for part in parts)
        operations += OF_FUNCTION * sum(isinstance(part, Call) and part.function in LONG for part in parts)
        return operations <= MOST_OPERATIONS

    def _is_read(self, rows: Rows) -> bool:
        """True if a variable of the rows is read after them."""
        within = Counter(names_of([rows.outer]))
        return any(self._reads[name] > within[name] for name in assigned(rows.straight))

    def _written(self, rows: Rows, ranges: Ranges) -> Block:
        outer, inner = rows.outer, rows.inner
        count = call("maximum", outer.stop - (outer.start or ZERO), ZERO)
        rest = Name(self._fresh("rest"))
        names = [self._names(rows, row) for row in range(ROWS)]
        before, within, after = (_in_turn(names, block) for block in (rows.before, inner.body, rows.after))
        together = For(inner.variable, inner.start, inner.stop, 1, within)
        if has_fixed_ends(inner, self._sizes):  # so that it has an iteration
            indices = Indices(self._sizes, ranges, dict.fromkeys(assigned([*before, *within])))
            list(accesses(before, indices))
            forget(within, indices)
            first, together = with_carried_loads(together, indices, self._fresh)
            before += first
        whole = together
        if rows.blocks is not None:
            whole = replace(rows.blocks, body=[*rows.blocks.body[:-1], together])
        return [
            Assign((rest,), (outer.stop - Binary("&", count, Number(ROWS - 1)),)),
            For(outer.variable, outer.start or ZERO, rest, ROWS, [*before, whole, *after]),
            For(outer.variable, rest, outer.stop, 1, outer.body),
        ]

    def _names(self, rows: Rows, row: int) -> Substitution:
        """One of the rows with variables of its own; the last one has the loop's."""
        own = assigned(rows.straight) if row < ROWS - 1 else set()
        values = {rows.outer.variable.name: rows.outer.variable + row}
        return Substitution(values, {}, lambda name: self._fresh(name) if name in own else name)


def _in_turn(names: Sequence[Substitution], block: Block) -> Block:
    """The statements of each row, with the comments of the first one."""
    rest: Block = [s for s in block if not isinstance(s, Comment)]
    return [s for k, row in enumerate(names) for s in row.block(rest if k else block)]


def _rows_of(outer: For) -> Rows | None:
    """The parts of a loop that has one loop in it, over the same range each time, and otherwise only assignments."""
    loops = [k for k, s in enumerate(outer.body) if isinstance(s, For)]
    if len(loops) != 1 or outer.kind != "range" or outer.step != 1:
        return None
    inner = outer.body[loops[0]]
    assert isinstance(inner, For)
    blocks = inner if _is_of_blocks(inner) else None
    if blocks is not None:
        inner = blocks.body[-1]
        assert isinstance(inner, For)
    before, after = outer.body[: loops[0]], outer.body[loops[0] + 1 :]
    if inner.kind != "range" or inner.step != 1:
        return None
    straight = [*before, *inner.body, *after]
    if not is_straight(straight):
        return None
    changing = {outer.variable.name, *assigned(straight)}
    ends = [e for loop in (inner, blocks) if loop is not None for e in (loop.start, loop.stop) if e is not None]
    if any(e.loads or not changing.isdisjoint(e.names) for e in ends):
        return None
    if not _is_apart(after, [*before, *inner.body]):
        return None
    if any(target.type.endswith("*") for s in straight for target in targets(s)):
        return None
    if read_first(straight, assigned(straight)):
        return None
    if read_first([*before, *after], assigned(inner.body)):  # the inner loop may have no iteration
        return None
    return Rows(outer, before, inner, after, blocks)


def _is_of_blocks(loop: For) -> bool:
    """True for a loop over blocks of iterations, which looks for interrupts. ::

        for begin in range(0, n, 32):
            if interrupted(watch):
                return
            for j in range(begin, minimum(begin + 32, n)):
    """
    match loop.body:
        case [If(branches=[(_, [Return()])], otherwise=None), For(start=Name(name=begin), stop=stop)]:
            until = call("minimum", loop.variable + loop.step, loop.stop)
            return loop.kind == "range" and begin == loop.variable.name and stop.text == until.text
    return False


def _uses_memory(statement: Statement) -> bool:
    return isinstance(statement, Store) or any(loads_of(statement))


def _is_apart(after: Block, earlier: Block) -> bool:
    """True if straight-line code may run after such code of later iterations of a loop."""
    loaded = [{load.pointer.name for s in block for load in loads_of(s)} for block in (after, earlier)]
    stored = [{s.pointer.name for s in block if isinstance(s, Store)} for block in (after, earlier)]
    return stored[0].isdisjoint(loaded[1] | stored[1]) and loaded[0].isdisjoint(stored[1])


def _are_independent(rows: Rows, before: Sequence[Access], inside: Sequence[Access], ranges: Ranges) -> bool:
    """True if the rows may run at once. `before`: the accesses before the inner loop, `inside`: its own."""
    j, t = rows.inner.variable.name, rows.outer.variable.name
    moved = [(later, True) for later in before] + [(later, False) for later in inside]
    return not any(
        _may_meet(earlier, later, t, j, ranges[j], is_before)
        for earlier in inside
        for later, is_before in moved
        if later.array == earlier.array and (later.is_store or earlier.is_store)
    )


def _may_meet(earlier: Access, later: Access, t: str, j: str, counter: Range, is_before: bool) -> bool:
    """Can an access of the inner loop in one row, and one of a row after it that now runs before it, be of the same
    element? `counter`: the inner loop's; `is_before`: the later one is outside of the inner loop.

    Of the inner loop, those run before it that are `e` iterations earlier: ``later(t + distance, j - e)`` is
    ``earlier(t, j)``, for an e of at least 1.
    """
    if earlier.index is None or later.index is None:
        return True
    difference = constant_difference(later.index, earlier.index, j if is_before else "")
    if difference is None:
        return True
    factor = earlier.index.get(j, 0)
    for distance in range(1, ROWS):
        gap = difference + later.index.get(t, 0) * distance
        if not factor:
            if gap == 0:
                return True
        elif gap % factor == 0:
            step = gap // factor
            if counter.has(step) if is_before else _is_within(step, counter):
                return True
    return False


def _is_within(iterations: int, counter: Range) -> bool:
    """True if two iterations of a loop may be so far apart."""
    return iterations >= 1 and (counter.count is None or iterations < counter.count)


def _memory_waits(inside: Sequence[Access], j: str, ranges: Ranges) -> bool:
    """True if an iteration loads an element that an earlier one stored."""
    for store in (a for a in inside if a.is_store and a.index is not None):
        for load in (a for a in inside if not a.is_store and a.array == store.array and a.index is not None):
            assert store.index is not None and load.index is not None
            gap, factor = constant_difference(store.index, load.index), store.index.get(j, 0)
            if gap is not None and factor and gap % factor == 0 and _is_within(gap // factor, ranges[j]):
                return True
    return False


def variable_waits(block: Block) -> bool:
    """True if a variable depends on its value in the iteration before, and is no sum."""
    carried = read_first(block, assigned(block))
    read = [name for s in block for e in expressions_of(s) for name in e.names]
    needs: dict[str, set[str]] = {name: {name} for name in carried}
    """The values at the iteration's begin on which the names depend."""
    for statement in block:
        if not isinstance(statement, Assign):
            continue
        found = [{n for name in v.names for n in needs.get(name, ())} for v in statement.values]
        for target, value, names in zip(statement.targets, statement.values, found, strict=True):
            adds_up = _adds_up(target, value) and read.count(target.name) == 1
            needs[target.name] = names - {target.name} if adds_up else names
    reached = {name: set(needs[name]) for name in carried}
    for _ in carried:
        for name, names in reached.items():
            reached[name] = names | {n for other in names for n in reached.get(other, ())}
    return any(name in names and not _only_moves(name, block) for name, names in reached.items())


def _only_moves(name: str, block: Block) -> bool:
    """True for a variable that keeps its value."""
    pairs = [pair for s in block if isinstance(s, Assign) for pair in zip(s.targets, s.values, strict=True)]
    values = [value for target, value in pairs if target.name == name]
    return all(isinstance(value, Name) and value.name == name for value in values)


def _adds_up(target: Name, value: Expr) -> bool:
    if not isinstance(value, Call) or not (value.function in _ASSOCIATIVE or value.function.startswith("reduce_")):
        return False
    return any(isinstance(a, Name) and a.name == target.name for a in value.arguments)

"""Find the elements of an array that a kernel stores to before it reads them.

    for t in range(298):
        for i in range(200):
            io0[(t + 2) * 200 + i] = io0[(t + 1) * 200 + i] + io0[t * 200 + i]

Rows 2 to 299 need no initial values: loops store to them in the order of memory, and each load is of an element before
the one that is stored to next. So a loop that updates a table needs no copy of those rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...hlo.support.records import dataclass
from .affine import Affine, Indices, Range
from .expressions import Expr
from .forward import assigned
from .statements import Assign, Augment, Block, Comment, For, LocalArray, Statement, Store, expressions_of, walk
from .straight_lines import Ranges, has_fixed_ends, loads_of, range_of

_PLAIN = (Assign, Augment, Comment, LocalArray, Store)


def stored_first(block: Block, array: str, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The first of these elements, and how many there are, one after the other; (0, 0) if none is known. `sizes`: the
    numbers that arguments stand for."""
    if not all(isinstance(s, (For, *_PLAIN)) for s in walk(block)) or not _is_used_by_element(block, array):
        return 0, 0
    for statement in block:
        if isinstance(statement, For) and any(_stores(s, array) for s in walk([statement])):
            run = _run_of(statement, array, sizes)
            if run is None or not _Check(run, array, sizes).block(block, {}, {}, 0):
                return 0, 0
            return run.first, run.count
    return 0, 0


@dataclass(frozen=True, slots=True)
class _Run:
    """A store that goes through neighbouring elements: in each loop, outer ones first, an iteration stores to all that
    comes before what the next one stores to."""

    loops: Sequence[For]
    store: Store
    factors: Sequence[tuple[str, int, int]]
    """The counter of each loop, the elements of an iteration, and the elements of all."""
    first: int

    @property
    def count(self) -> int:
        """The elements of all loops."""
        return self.factors[0][2]


def _stores(statement: Statement, array: str) -> bool:
    return isinstance(statement, Store) and statement.pointer.name == array


def _is_used_by_element(block: Block, array: str) -> bool:
    """True if the array is only stored to and loaded from, and never given to a function."""
    uses = elements = 0
    for statement in walk(block):
        elements += _stores(statement, array)
        for whole in expressions_of(statement):
            uses += whole.names.count(array)
            elements += sum(load.pointer.name == array for load in whole.loads)
    return uses == elements


def _run_of(loop: For, array: str, sizes: Mapping[str, int]) -> _Run | None:
    """The run that the first store to the array in the loop is, if it is one."""
    loops: list[For] = []
    ranges: Ranges = {}
    indices = Indices(sizes, ranges, {})
    statement: Statement = loop
    while isinstance(statement, For):
        if statement.step != 1 or not has_fixed_ends(statement, sizes):
            return None
        loops.append(statement)
        ranges = {**ranges, statement.variable.name: range_of(statement, sizes, ranges)}
        indices = _inside(statement, indices, ranges)
        for inner in statement.body:
            if any(_stores(s, array) for s in walk([inner])):
                statement = inner
                break
            _learn(inner, indices)
    assert isinstance(statement, Store)
    index = indices.of(statement.index)
    if index is None:
        return None
    elements, factors, first = 1, [], index.get("", 0)
    for each in reversed(loops):
        name = each.variable.name
        counter = ranges[name]
        if not counter.count or counter.least is None or index.get(name, 0) != elements:
            return None
        first += elements * counter.least
        factors.append((name, elements, elements * counter.count))
        elements *= counter.count
    if any(factor for name, factor in index.items() if name and name not in ranges):
        return None
    return _Run(loops, statement, factors[::-1], first)


def _inside(loop: For, around: Indices, ranges: Ranges) -> Indices:
    """What is known at the beginning of each iteration: not the names that others assign to."""
    known = dict(around.known)
    known.update(dict.fromkeys(assigned(loop.body)))
    known.pop(loop.variable.name, None)
    return Indices(around.sizes, ranges, known)


def _learn(statement: Statement, indices: Indices) -> None:
    """What is known after a statement."""
    if isinstance(statement, Assign):
        values = [indices.of(value) if _is_integer(value) else None for value in statement.values]
        indices.known.update(zip(assigned([statement]), values, strict=True))
    else:
        indices.known.update(dict.fromkeys(assigned([statement])))


def _is_integer(value: Expr) -> bool:
    return "int" in value.type


class _Check:
    """Whether every load is of an element that is outside of the run, or that the run has stored to."""

    def __init__(self, run: _Run, array: str, sizes: Mapping[str, int]) -> None:
        self._run, self._array, self._sizes = run, array, sizes

    def block(self, block: Block, ranges: Ranges, known: Mapping[str, Affine | None], depth: int) -> bool:
        """`depth`: the number of loops of the run around the block."""
        return self._block(block, Indices(self._sizes, ranges, dict(known)), depth, True, self._stored_at(depth))

    def _stored_at(self, depth: int) -> int:
        """How far the run has come when the loop of that depth begins, besides the counters of the loops around it: the
        elements before this one are stored to, or outside."""
        outer = self._run.factors[:depth]
        return self._run.first - sum(elements * self._least(k) for k, (_, elements, _) in enumerate(outer))

    def _least(self, depth: int) -> int:
        least = range_of(self._run.loops[depth], self._sizes, {}).least
        assert least is not None
        return least

    def _block(self, block: Block, indices: Indices, depth: int, is_of_run: bool, stored: int) -> bool:
        run = self._run
        place: Statement = run.loops[depth] if depth < len(run.loops) else run.store
        for statement in block:
            if not self._loads(statement, indices, depth, stored):
                return False
            if isinstance(statement, For):
                ranges = {**indices.ranges, statement.variable.name: range_of(statement, self._sizes, indices.ranges)}
                inside = _inside(statement, indices, ranges)
                is_next = is_of_run and statement is place
                inner, reached = (depth + 1, self._stored_at(depth + 1)) if is_next else (depth, stored)
                if not self._block(statement.body, inside, inner, is_next, reached):
                    return False
            if is_of_run and statement is place:
                if depth == 0:
                    return True  # all are stored to
                stored += run.factors[depth][2] if depth < len(run.factors) else 1
            _learn(statement, indices)
        return True

    def _loads(self, statement: Statement, indices: Indices, depth: int, stored: int) -> bool:
        for load in loads_of(statement):
            if load.pointer.name == self._array:
                index = indices.of(load.index)
                if index is None or not self._is_there(index, indices, depth, stored):
                    return False
        return True

    def _is_there(self, index: Affine, indices: Indices, depth: int, stored: int) -> bool:
        run = self._run
        known = indices.bounds(index).both(Range(run.first, run.first + run.count - 1))
        if known.count == 0:
            return True
        rest = dict(index)
        for name, elements, _ in run.factors[:depth]:
            rest[name] = rest.get(name, 0) - elements
        most = indices.bounds(rest).most
        return most is not None and most < stored

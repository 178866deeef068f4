"""Straight-line code in loops: which variables it assigns, and which elements it uses, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce

from ...hlo.support.records import dataclass
from .affine import Affine, Indices, Range
from .expressions import ZERO, Call, Expr, Load, Name
from .rewrite import with_names
from .statements import Assign, Block, Comment, For, Statement, Store, expressions_of, with_blocks

Ranges = Mapping[str, Range]
"""The values of loops' counters."""

MOST_NAMES = 32
"""Names in a value that is written in terms of names from outside. Random bits that follow from a counter have
millions."""

_INTEGERS = frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"))


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store of an element. `index`: None if it is not known as a sum of counters."""

    array: str
    index: Affine | None
    is_store: bool


def is_straight(statements: Iterable[Statement]) -> bool:
    """True for assignments and stores alone."""
    return all(isinstance(s, (Assign, Comment, Store)) for s in statements)


def targets(statement: Statement) -> tuple[Name, ...]:
    """The variables that an assignment assigns to."""
    return statement.targets if isinstance(statement, Assign) else ()


def assigned(statements: Iterable[Statement]) -> set[str]:
    """The names that straight-line code assigns to."""
    return {target.name for s in statements for target in targets(s)}


def read_first(block: Block, names: set[str]) -> set[str]:
    """Those of the names that straight-line code reads before it assigns to them."""
    found: set[str] = set()
    done: set[str] = set()
    for statement in block:
        for whole in expressions_of(statement):
            found |= (names & set(whole.names)) - done
        done |= assigned([statement])
    return found


class FromOutside:
    """Values in a loop of straight-line code, written in names that it does not assign to, while its statements are
    read in order. `values`: of further names, such as the counter."""

    def __init__(self, body: Block, values: Mapping[str, Expr] | None = None) -> None:
        self._assigned = assigned(body)
        self._values = dict(values or {})
        self._sizes: dict[str, int] = {}

    def of(self, e: Expr) -> Expr | None:
        """The value of an expression; None if it reads memory or a name without a value, and for long ones."""
        if e.loads or any(name in self._assigned and name not in self._values for name in e.names):
            return None
        return with_names(e, self._values) if self._size(e) <= MOST_NAMES else None

    def assign(self, statement: Assign) -> None:
        """Take over what a statement assigns."""
        found = [(self.of(value), self._size(value)) for value in statement.values]
        for target, (value, size) in zip(statement.targets, found, strict=True):
            self._values.pop(target.name, None)
            if value is not None:
                self._values[target.name], self._sizes[target.name] = value, size

    def _size(self, e: Expr) -> int:
        """The names in a written value; a value of numbers alone counts as one."""
        return sum(self._sizes.get(name, 1) for name in e.names) or 1


def loads_of(statement: Statement) -> Iterator[Load]:
    """The loads in a statement itself."""
    for whole in expressions_of(statement):
        yield from whole.loads


def accesses(block: Block, indices: Indices) -> Iterator[Access]:
    """The uses of memory in straight-line code, in order; `indices` then knows the names that it assigns."""
    for statement in block:
        for load in loads_of(statement):
            yield Access(load.pointer.name, indices.of(load.index), False)
        if isinstance(statement, Store):
            yield Access(statement.pointer.name, indices.of(statement.index), True)
        elif isinstance(statement, Assign):
            values = [indices.of(value) if value.type in _INTEGERS else None for value in statement.values]
            indices.known.update((t.name, value) for t, value in zip(statement.targets, values, strict=True))


def forget(block: Block, indices: Indices) -> None:
    """The names that a loop's body assigns to have other values in each iteration."""
    indices.known.update(dict.fromkeys(assigned(block)))


def accesses_around(before: Block, body: Block, indices: Indices) -> tuple[list[Access], list[Access]]:
    """The accesses of straight-line code, and those of an iteration of a loop after it, which has such a body."""
    outside = list(accesses(before, indices))
    forget(body, indices)
    return outside, list(accesses(body, indices))


def with_changed_loops(
    block: Block, sizes: Mapping[str, int], change: Callable[[For, Ranges, Callable[[], Block]], Block],
    ranges: Ranges | None = None,
) -> Block:  # fmt: skip
    """The statements, with what `change` gives in the place of each loop. It is called with the loop, the values of its
    counter and of those around it, and a function that gives the loop's body with changed loops."""
    around = ranges or {}
    result: Block = []
    for statement in block:
        if isinstance(statement, For):
            inside = {**around, statement.variable.name: range_of(statement, sizes, around)}
            result += change(statement, inside, partial(with_changed_loops, statement.body, sizes, change, inside))
        else:
            result.append(with_blocks(statement, lambda inner: with_changed_loops(inner, sizes, change, around)))
    return result


def range_of(loop: For, sizes: Mapping[str, int], ranges: Ranges) -> Range:
    """The values of a loop's counter."""
    indices = Indices(sizes, ranges, {})
    start = _bounds(indices, ZERO if loop.start is None else loop.start)
    stop = _bounds(indices, loop.stop)
    if loop.step > 0:
        return Range(start.least, None if stop.most is None else stop.most - 1)
    return Range(None if stop.least is None else stop.least + 1, start.most)


def has_fixed_ends(loop: For, sizes: Mapping[str, int]) -> bool:
    """True if the loop runs over the same numbers each time, not only within the same bounds."""
    indices = Indices(sizes, {}, {})
    ends = [indices.of(end) for end in (ZERO if loop.start is None else loop.start, loop.stop)]
    return all(end is not None and not end.keys() - {""} for end in ends)


def _bounds(indices: Indices, e: Expr) -> Range:
    if isinstance(e, Call) and e.function == "minimum":
        return Range(None, reduce(Range.both, [_bounds(indices, a) for a in e.arguments]).most)
    value = indices.of(e)
    return Range(None, None) if value is None else indices.bounds(value)

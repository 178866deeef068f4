"""A transform: leave out products with the zeros of a mask, while the other factors are finite numbers.

    for t in range(n):                                  spoiled0 = float32(0)
        if all_finite(y):                               for i in range(n):
            for i in range(t):                              spoiled0 = reduce_add(spoiled0, y[i] * float32(0))
                acc0 = reduce_add(acc0, x[i] * y[i])    for t in range(n):
        else:                                 ->            if spoiled0 == float32(0):
            ...                                                 ...
        y[t] = b[t] - acc0                                  kept0 = b[t] - acc0
                                                            y[t] = kept0
                                                            spoiled0 = reduce_add(spoiled0, kept0 * float32(0))

The product of a masked row and a vector, ``where(index < t, x, 0) @ y``, has the terms ``0 * y[i]`` where the mask
hides the row: nothing, unless an element is infinite or NaN. A variable notes whether one has ever been in the array:
it is 0 until then, and NaN from then on. Nothing that the loop waits for waits for it. A sum that begins as +0 is never
-0, so that adding +0 or -0 changes nothing. `masks.py` and the products of native loops write both ways of a sum; here
the tests get their meaning, or the whole sum stays, where looking at the elements would take as long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace

from ...hlo.support.records import dataclass
from .expressions import Binary, Call, Expr, Load, Name, Number, call
from .rewrite import rewritten
from .statements import Assign, Block, For, If, Statement, Store, While, expressions_of, inner_blocks, walk, with_blocks
from .typing import pointee

UNKNOWN_TRIPS = 10
"""Iterations that are assumed for a loop whose ends only a run knows."""
LEAST_GAIN = 2
"""Terms of the sums for each element that is looked at."""


def with_finite_factors(
    block: Block, given: Collection[str], sizes: Mapping[str, int], counts: Mapping[str, int],
    size: Callable[[int], Expr], fresh: Callable[[str], str],
) -> Block:  # fmt: skip
    """The statements with such tests written out, or with the whole sums.

    `given`: the arrays that hold numbers before the first statement; `sizes`: the numbers that arguments stand for;
    `counts`: the elements of each array, and `size`: such a number as an expression; `fresh`: a new name like a given
    one."""
    if not any(map(_arrays_of, walk(block))):
        return block
    result: Block = []
    for position, statement in enumerate(block):
        before: Block = []
        if any(map(_arrays_of, walk([statement]))):
            uses = _Uses(sizes)
            uses.read([statement], 1)
            filled = {*given, *_filled(block[:position], sizes, counts)}
            notes: dict[str, Name] = {}
            if isinstance(statement, (For, While)):
                for name, pointer in uses.pointers.items():
                    if name in filled and name in counts and uses.pays(name, counts[name]):
                        notes[name] = Name(fresh("spoiled"), pointee(pointer.type))
                        before += _looked_at(pointer, notes[name], size(counts[name]))
            (statement,) = _Written(notes, fresh).block([statement])
        result += [*before, statement]
    return result


def without_finite_factors(block: Block) -> Block:
    """The statements with the whole sums."""
    return _Written({}, str).block(block) if any(map(_arrays_of, walk(block))) else block


def _arrays_of(statement: Statement) -> list[Name]:
    """The arrays that a statement tests."""
    if not isinstance(statement, If):
        return []
    test = statement.branches[0][0]
    return [e.arguments[0] for e in test.walk() if isinstance(e, Call) and e.function == "all_finite"]  # type: ignore[misc]


@dataclass(slots=True)
class _Uses:
    """The tests in a loop, and all that happens to their arrays there."""

    sizes: Mapping[str, int]
    pointers: dict[str, Name] = field(default_factory=dict)
    """The arrays that are tested."""
    terms: dict[str, int] = field(default_factory=dict)
    """About how many terms the sums have that test an array."""
    stores: dict[str, int] = field(default_factory=dict)
    """About how many elements are stored, by array."""
    others: set[str] = field(default_factory=set)
    """Arrays that are used as a whole, or stored to in loops that are vectors."""
    values: dict[str, Expr] = field(default_factory=dict)

    def pays(self, name: str, count: int) -> bool:
        """True if more terms are left out than elements are looked at."""
        looked_at = self.stores.get(name, 0) + count
        return name not in self.others and LEAST_GAIN * looked_at <= self.terms[name]

    def read(self, block: Block, times: int, is_vector: bool = False) -> None:
        """Read a block that runs so many times."""
        for statement in block:
            self._assign(statement)
            if isinstance(statement, Store):
                name = statement.pointer.name
                self.stores[name] = self.stores.get(name, 0) + times
                if is_vector:
                    self.others.add(name)
            tested = _arrays_of(statement)
            if tested:
                assert isinstance(statement, If) and statement.otherwise is not None
                terms = self._most_times(statement.otherwise, times)
                for array in tested:
                    self.pointers[array.name] = array
                    self.terms[array.name] = self.terms.get(array.name, 0) + terms
                self.read(statement.otherwise, times, is_vector)
                continue
            for whole in expressions_of(statement):
                if not (isinstance(statement, Store) and whole is statement.pointer):
                    self.others.update(_used_as_a_whole(whole))
            inside = is_vector or (isinstance(statement, For) and statement.kind != "range")
            for inner in inner_blocks(statement):
                self.read(inner, times * self._trips(statement), inside)

    def _assign(self, statement: Statement) -> None:
        if isinstance(statement, Assign):
            self.values.update((t.name, v) for t, v in zip(statement.targets, statement.values, strict=True))

    def _most_times(self, block: Block, times: int) -> int:
        """How often the innermost statement runs."""
        for statement in block:
            self._assign(statement)
        most = [self._most_times(inner, times * self._trips(s)) for s in block for inner in inner_blocks(s)]
        return max(most, default=times)

    def _trips(self, statement: Statement) -> int:
        """About how often the blocks of a statement run."""
        if isinstance(statement, While):
            return UNKNOWN_TRIPS
        if not isinstance(statement, For):
            return 1
        start = 0 if statement.start is None else self._number(statement.start)
        stop = self._number(statement.stop)
        match statement.stop:
            case Call(function="minimum", arguments=(Binary(op="+", left=left, right=right), most)):
                if statement.start is not None and left.text == statement.start.text:  # a block of iterations
                    start, stop = 0, self._least(right, most)
        if start is None or stop is None:
            return UNKNOWN_TRIPS
        return max(-(-(stop - start) // statement.step), 1)

    def _number(self, e: Expr, depth: int = 4) -> int | None:
        """The number that an expression stands for; of a minimum, that of a part which is known."""
        match e:
            case Number(value=value):
                return int(value)
            case Name(name=name):
                known, value_of = self.sizes.get(name), self.values.get(name)
                return self._number(value_of, depth - 1) if known is None and value_of is not None and depth else known
            case Call(function="minimum", arguments=(left, right)) if depth:
                return self._least(left, right, depth - 1)
            case Binary(op="+" | "-" | "*" | "//" as op, left=left, right=right) if depth:
                a, b = self._number(left, depth - 1), self._number(right, depth - 1)
                if a is None or b is None or (op == "//" and not b):
                    return None
                return {"+": a + b, "-": a - b, "*": a * b}[op] if op != "//" else a // b
        return None

    def _least(self, a: Expr, b: Expr, depth: int = 4) -> int | None:
        return min((n for n in (self._number(a, depth), self._number(b, depth)) if n is not None), default=None)


def _used_as_a_whole(e: Expr) -> Iterator[str]:
    """The arrays in an expression that no element is loaded from."""
    open_ = [e]
    while open_:
        top = open_.pop()
        if isinstance(top, Load):
            open_.append(top.index)
        elif isinstance(top, Name):
            if top.type.endswith("*"):
                yield top.name
        else:
            open_ += top.parts


def _filled(block: Block, sizes: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[str]:
    """The arrays that loops in these statements have filled."""
    uses = _Uses(sizes)
    for statement in block:
        if isinstance(statement, For) and statement.start is None and statement.step == 1:
            for inner in statement.body:
                if isinstance(inner, Store) and inner.index.text == statement.variable.name:
                    name = inner.pointer.name
                    stop = statement.stop
                    if isinstance(stop, (Name, Number)) and uses._number(stop) == counts.get(name):
                        yield name


def _noted(note: Name, value: Expr) -> Statement:
    return Assign((note,), (call("reduce_add", note, Binary("*", value, call(note.type, 0))),))


def _looked_at(pointer: Name, note: Name, size: Expr) -> Block:
    """The statements that look at all elements of an array."""
    i = Name("i")
    return [Assign((note,), (call(note.type, 0),)), For(i, None, size, 1, [_noted(note, pointer[i])])]


class _Written:
    """Writes statements in which these arrays have notes, by name."""

    def __init__(self, notes: Mapping[str, Name], fresh: Callable[[str], str]) -> None:
        self._notes, self._fresh = notes, fresh

    def block(self, block: Block) -> Block:
        """The statements, with notes of what is stored."""
        return [new for statement in block for new in self._statement(statement)]

    def _statement(self, statement: Statement) -> Block:
        arrays = _arrays_of(statement)
        if arrays:
            assert isinstance(statement, If) and statement.otherwise is not None
            whole = self.block(statement.otherwise)
            ((test, shown),) = statement.branches
            if not all(array.name in self._notes for array in arrays):
                return whole
            return [If([(rewritten(test, self._test), self.block(shown))], whole)]
        if isinstance(statement, Store) and (note := self._notes.get(statement.pointer.name)) is not None:
            kept = Name(self._fresh("kept"), note.type)
            value = statement.value if statement.value.type == kept.type else call(kept.type, statement.value)
            return [Assign((kept,), (value,)), replace(statement, value=kept), _noted(note, kept)]
        return [with_blocks(statement, self.block)]

    def _test(self, e: Expr) -> Expr | None:
        if isinstance(e, Call) and e.function == "all_finite":
            (array,) = e.arguments
            assert isinstance(array, Name)
            note = self._notes[array.name]
            return note.eq(call(note.type, 0))
        return None

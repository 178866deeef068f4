"""A transform: split loops at the iteration where a test on their counter changes its answer.

    for i in range(n):                      part0 = x[n - 1]
        if i < 1:                           out[0] = part0
            part0 = x[i + n - 1]            for i in range(1, n):
        else:                                   part0 = x[i - 1]
            part0 = x[i - 1]                    out[i] = part0
        out[i] = part0

The iterations stay in their order, and without the test LLVM makes vectors of them, or a copy of memory. Tests compare
the counter, perhaps plus a term that is fixed in the loop, with a value that is fixed too, as concatenation and padding
do. If the body of a part still has tests, that part is split again, so that n operands of a concatenation make n loops.
Outer loops are split first, since that decides some tests of inner loops. The tests of an element may come from several
instructions, and in a native loop from several kernels; so the program is transformed once it is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from ...hlo.support.records import dataclass
from .expressions import ZERO, Binary, Expr, Name, Number, all_of, call, minus, plus
from .forward import assigned
from .lanes import in_lanes
from .rewrite import Substitution
from .statements import Assign, Block, For, If, Store, walk, with_blocks
from .typing import type_of_binary

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The relation of b to a for that of a to b."""

MOST_PARTS = 16
"""Most loops that one loop is split into."""

MOST_STATEMENTS = 200
"""Statements of all parts together: code that is compiled, and kept in the cache."""


def split_loops(block: Block) -> Block:
    """The statements, with loops split at their tests."""
    if not any(isinstance(statement, If) for statement in walk(block)):
        return block
    result: Block = []
    for statement in block:
        parts = _split(statement) if isinstance(statement, For) and statement.step == 1 else [statement]
        result += [with_blocks(part, split_loops) for part in parts]
    return result


def without_single_iterations(block: Block) -> Block:
    """The statements, with loops that run once replaced by their bodies, and without loops that never run."""
    result: Block = []
    for statement in block:
        inner = with_blocks(statement, without_single_iterations)
        count = _trip_count(inner) if isinstance(inner, For) else None
        if count == 0:
            continue
        if isinstance(inner, For) and count == 1:
            start = inner.start or ZERO
            result += Substitution({inner.variable.name: start}, {}, lambda name: name).block(inner.body)
        else:
            result.append(inner)
    return result


def _trip_count(loop: For) -> int | None:
    """How often a loop runs, if that is in its text."""
    start = loop.start or ZERO
    if not isinstance(start, Number) or not isinstance(loop.stop, Number) or loop.step != 1:
        return None
    return max(int(loop.stop.value) - int(start.value), 0)


@dataclass(frozen=True, slots=True)
class Counter:
    """A loop's counter, and facts that hold in the loop."""

    name: str
    assigned: frozenset[str]
    """The names that change in the loop."""
    sums: Mapping[str, Expr]
    """Names for the counter plus a fixed term: the term, by name."""

    def offset(self, e: Expr) -> Expr | None:
        """The term that `e` adds to the counter; None if `e` is not the counter plus a fixed term."""
        if isinstance(e, Name):
            return ZERO if e.name == self.name else self.sums.get(e.name)
        if isinstance(e, Binary) and e.op in ("+", "-"):
            left = self.offset(e.left)
            if left is not None and self.is_fixed(e.right):
                return plus(left, e.right) if e.op == "+" else minus(left, e.right)
            if e.op == "+" and self.is_fixed(e.left):
                right = self.offset(e.right)
                return None if right is None else plus(e.left, right)
        return None

    def is_fixed(self, e: Expr) -> bool:
        """True for an integer that is the same in all iterations."""
        for part in e.walk():
            match part:
                case Binary(op=op):  # of integers, which are looked at themselves
                    fixed = type_of_binary(op, "int64", "int64") == "int64"
                case Name(name=name):
                    fixed = part.type == "int64" and name not in self.assigned
                case _:
                    fixed = isinstance(part, Number) and part.type == "int64"
            if not fixed:
                return False
        return True

    def point(self, test: Expr) -> tuple[Expr, bool] | None:
        """(p, answer) for a test that gives `answer` from iteration p on, and the opposite before."""
        if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
            return None
        op, left, right = test.op, test.left, test.right
        if self.offset(left) is None:
            op, left, right = MIRRORED[op], right, left
        offset = self.offset(left)
        if offset is None or not self.is_fixed(right):
            return None
        point = folded(minus(right, offset))
        if op in ("<=", ">"):
            point = folded(plus(point, Number(1)))
        return point, op in (">", ">=")



def folded(e: Expr) -> Expr:
    """The expression, as a literal if all its parts are."""
    if isinstance(e, Binary) and e.op in ("+", "-", "*"):
        left, right = folded(e.left), folded(e.right)
        if isinstance(left, Number) and isinstance(right, Number):
            a, b = int(left.value), int(right.value)
            return Number(a + b if e.op == "+" else a - b if e.op == "-" else a * b)
        return plus(left, right) if e.op == "+" else minus(left, right) if e.op == "-" else Binary("*", left, right)
    return e


def _split(loop: For) -> Block:
    parts = list(itertools.islice(_parts(loop, loop.start or ZERO, loop.stop, loop.body), MOST_PARTS + 1))
    size = sum(1 for _, _, body in parts for _ in walk(body))
    if len(parts) == 1 or len(parts) > MOST_PARTS or size > MOST_STATEMENTS:
        return [loop]
    result: Block = []
    for start, stop, body in parts:
        if body:
            first = None if isinstance(start, Number) and start.value == 0 else start
            result.append(For(loop.variable, first, stop, 1, body))
    return result


def with_copies(block: Block, within: bool = False) -> Block:
    """The statements, with loops over lanes for short loops in other short ones, perhaps of one iteration, that have
    become copies, as ``part0 = x[i]; out[i] = part0`` is ``out[i] = x[i]``: LLVM would write down each element.
    `within`: the block is in a short loop."""
    result: Block = []
    for statement in block:
        short = isinstance(statement, For) and bool(_trip_count(statement))
        inner = with_blocks(statement, partial(with_copies, within=within or short))
        result.append(_copy(inner) if within and isinstance(inner, For) else inner)
    return result


def _copy(loop: For) -> For:
    match loop.body:
        case [Assign(targets=(name,), values=(value,)), Store(value=Name(name=same)) as store] if (
            name.name == same and name.type == value.type and not store.index.reads(same)
            and name.depth >= loop.variable.depth
        ):
            copied = in_lanes(replace(loop, body=[replace(store, value=value)]), ())
            return copied if copied.kind == "lanes" else loop
    return loop


_Part = tuple[Expr, Expr, Block]
"""The first iteration, the end, and the body."""


def _parts(loop: For, start: Expr, stop: Expr, body: Block) -> Iterator[_Part]:
    """The loop from `start` to `stop` in parts without tests, in order."""
    tests = list(tests_of(body))
    if not tests:
        yield start, stop, body
        return
    changing = frozenset(assigned(loop.body)) | {loop.variable.name}
    counter = Counter(loop.variable.name, changing, {})
    counter = replace(counter, sums=dict(sums_of(body, counter)))
    point = next((found[0] for test in tests if (found := counter.point(test)) is not None), None)
    if point is None:
        yield start, stop, body
        return
    for begin, end, is_after in _cut(start, stop, point):
        yield from _parts(loop, begin, end, _decided(body, counter, {point.text: is_after}))


def _cut(start: Expr, stop: Expr, point: Expr) -> Iterator[tuple[Expr, Expr, bool]]:
    """The parts before and after a point, without those that are known to be empty."""
    low, at, high = [e.value if isinstance(e, Number) else None for e in (start, point, stop)]
    if not (low is not None and at is not None and at <= low):
        end = point if at is not None and high is not None and at <= high else call("minimum", point, stop)
        if at is not None and high is not None and at > high:
            end = stop
        yield start, end, False
    if not (at is not None and high is not None and at >= high):
        begin = point if low is not None and at is not None and at >= low else call("maximum", point, start)
        if low is not None and at is not None and at < low:
            begin = start
        yield begin, stop, True


def _decided(block: Block, counter: Counter, after: Mapping[str, bool]) -> Block:
    """The block without the tests that are decided: see `_answer`."""
    result: Block = []
    for statement in block:
        match statement:
            case If(branches=branches, otherwise=otherwise):
                kept: list[tuple[Expr, Block]] = []
                last = otherwise
                for test, inner in branches:
                    test = _open_part(test, counter, after)
                    answer = _answer(test, counter, after)
                    if answer is True:
                        last = inner
                        break
                    if answer is None:
                        kept.append((test, _decided(inner, counter, after)))
                last = None if last is None else _decided(last, counter, after)
                if kept:
                    result.append(If(kept, last))
                elif last is not None:
                    result += last
            case _:
                result.append(with_blocks(statement, lambda inner: _decided(inner, counter, after)))
    return result


def _answer(test: Expr, counter: Counter, after: Mapping[str, bool]) -> bool | None:
    if isinstance(test, Binary) and test.op == "and":
        sides = [_answer(side, counter, after) for side in (test.left, test.right)]
        return False if False in sides else None if None in sides else True
    found = counter.point(test)
    if found is None:
        return None
    known = after.get(found[0].text)
    return None if known is None else known == found[1]


def _open_part(test: Expr, counter: Counter, after: Mapping[str, bool]) -> Expr:
    """`test` without the conditions in it that are known to hold."""
    if not isinstance(test, Binary) or test.op != "and":
        return test
    sides = [_open_part(side, counter, after) for side in (test.left, test.right)]
    sides = [side for side in sides if _answer(side, counter, after) is not True] or sides[:1]
    return all_of(sides)


def tests_of(block: Block) -> Iterator[Expr]:
    """The conditions that must all hold, of the tests of a block."""
    for statement in walk(block):
        if isinstance(statement, If):
            for test, _ in statement.branches:
                yield from conditions(test)


def conditions(test: Expr, operators: Collection[str] = ("and",)) -> Iterator[Expr]:
    """The conditions that must all hold, of a test with such operators."""
    if isinstance(test, Binary) and test.op in operators:
        yield from conditions(test.left, operators)
        yield from conditions(test.right, operators)
    else:
        yield test


def sums_of(block: Block, counter: Counter) -> Iterator[tuple[str, Expr]]:
    """The names that are assigned once, at the top of the loop, to the counter plus a fixed term."""
    times: dict[str, int] = {}
    for name in assigned(block):
        times[name] = times.get(name, 0) + 1
    for statement in block:
        if isinstance(statement, Assign) and len(statement.targets) == 1:
            name, offset = statement.targets[0].name, counter.offset(statement.values[0])
            if offset is not None and times[name] == 1:
                yield name, offset


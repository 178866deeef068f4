"""Move a loop inward: its independent iterations advance together, one step of the body at a time.

    for l in range(16):                           for l in range(16):
        total = w[l]                                  total[l] = w[l]
        for i in range(n):              ->        for i in range(n):
            total = total + w[i * 16 + l]             for l in range(16):
        if total > best[l]:                               total[l] = total[l] + w[i * 16 + l]
            best[l] = total                       for l in range(16):
                                                      best[l] = select(total[l] > best[l], total[l], best[l])

So each scalar becomes one scalar for each iteration, stored in an array if it is used outside of one piece of straight
code. Each piece is a loop, and LLVM makes vectors of it. Branches on values that differ between iterations become
`select`; ``range(maximum(a, x), minimum(b, y))``, where x and y differ between iterations, becomes ``range(a, b)`` and
a condition. Values are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...hlo.support.records import dataclass
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, Unary, all_of, is_number
from .rewrite import rewritten, with_new_parts
from .statements import (
    Assign,
    Augment,
    Block,
    For,
    If,
    LocalArray,
    Statement,
    Store,
    While,
    expressions_of,
    inner_blocks,
    walk,
    with_blocks,
    with_values,
)
from .typing import pointee, pointer_to


class CannotGoInward(Exception):
    """The iterations of a loop cannot advance together; the message says why."""


@dataclass(frozen=True)
class Inward:
    """All loops over a variable of this name go inward."""

    variable: str
    widths: tuple[tuple[int, int], ...] = ()
    """A loop that ends at the first number becomes one from 0 to the second, so that its length is in the text. Before
    its start, nothing is stored; behind its end there is memory with arbitrary contents."""
    arrays: tuple[tuple[str, str], ...] = ()
    """Arrays of the program for scalars, where the loop's length is not in the text."""
    whole: bool = False
    """Stores before the start of such a loop are allowed too."""
    numbers: str = "float64"
    """The type of the arrays for integers and conditions that are used outside of one piece. It is the type of the
    other numbers, so that vectors have the same lengths. Integers are small."""

    def applied(self, block: Block) -> Block:
        """The statements with these loops inside."""
        result: Block = []
        for statement in block:
            if isinstance(statement, For) and statement.variable.name == self.variable:
                result += _Moved(self, statement).statements()
            else:
                result.append(with_blocks(statement, self.applied))
        return result


class _Moved:
    """One loop that goes inward."""

    def __init__(self, step: Inward, loop: For) -> None:
        self._loop, self._step = loop, step
        start = loop.start or ZERO
        self._start, self._stop = loop.start, loop.stop
        self._stores: list[Expr] = []
        """The conditions under which an iteration stores at all."""
        width = dict(step.widths).get(int(loop.stop.value)) if isinstance(loop.stop, Number) else None
        if width is not None:
            self._start, self._stop = None, Number(width)
            self._stores += [] if step.whole or is_number(start, 0) else [loop.variable >= start]
        self._arrays = dict(step.arrays)
        self._temporaries = temporaries(loop.body)
        self._tests = 0
        self._varying = {loop.variable.name}
        """Names with values that differ between iterations."""
        before = 0
        while len(self._varying) != before:
            before = len(self._varying)
            self._mark(loop.body, False)

    def statements(self) -> Block:
        loop = self._loop
        pieces = self._block(loop.body, [])
        runs = [s for s in walk(pieces) if isinstance(s, For) and s.variable is loop.variable]
        kept: dict[str, str] = {}
        if pieces != runs[:1]:
            for run in runs:
                kept |= {name.name: name.type for name in _exposed(run.body) if name.name in self._varying}
            kept.pop(loop.variable.name, None)
        arrays = {name: self._array(name, type_) for name, type_ in kept.items()}
        conditions = {name for name, type_ in kept.items() if type_ == "bool"}
        for name in self._integers(runs) - arrays.keys():
            arrays[name] = Name(name, self._step.numbers)
        for run in runs:
            run.body[:] = _Kept(arrays, conditions, loop.variable).block(run.body)
        own = [array for name, array in arrays.items() if name in kept and name not in self._arrays]
        if own and not isinstance(self._stop, Number):
            raise CannotGoInward(f"the loop over {loop.variable} has no length in the text")
        count = int(self._stop.value) if isinstance(self._stop, Number) else 0
        return [*(LocalArray(array, count, pointee(array.type)) for array in own), *pieces]

    def _integers(self, runs: Sequence[For]) -> set[str]:
        """Integers that differ between iterations, and are no part of an index."""
        found: set[str] = set()
        places: set[str] = set()
        for statement in (s for run in runs for s in run.body):
            if isinstance(statement, Assign):
                found |= {t.name for t in statement.targets if t.type == "int64" and t.name in self._varying}
            for whole in expressions_of(statement):
                places |= {name for load in whole.loads for name in load.index.names}
            if isinstance(statement, Store):
                places |= set(statement.index.names)
        return found - places

    def _array(self, name: str, type_: str) -> Name:
        type_ = self._step.numbers if type_ in ("int64", "bool") else type_
        return Name(self._arrays.get(name, name), pointer_to(type_))

    def _mark(self, block: Block, inside: bool) -> None:
        """Find names that depend on the iteration. `inside`: whether the block runs depends on it."""
        for statement in block:
            depends = inside or any(map(self._varies, expressions_of(statement)))
            match statement:
                case Assign(targets=targets) if depends:
                    self._varying |= {target.name for target in targets}
                case Augment(target=target) if depends:
                    self._varying.add(target.name)
                case _:
                    for inner in inner_blocks(statement):
                        self._mark(inner, depends)

    def _varies(self, e: Expr) -> bool:
        if isinstance(e, Call) and e.function == "any_of":
            return False
        return not self._varying.isdisjoint(e.names)

    # ---- pieces of straight code

    def _block(self, block: Block, mask: list[Expr]) -> Block:
        """The statements in pieces. `mask`: the conditions under which an iteration takes part."""
        result: Block = []
        run: Block = []
        self._add(block, mask, run, result)
        self._close(run, result)
        return result

    def _add(self, block: Block, mask: list[Expr], run: Block, result: Block) -> None:
        for statement in block:
            match statement:
                case Assign(targets=(target,), values=(value,)) if target.name in self._varying:
                    known = not mask or target.name in self._temporaries
                    run.append(Assign((target,), (value if known else _selected(mask, value, target),)))
                case Augment(target=target, op=op, value=value) if target.name in self._varying:
                    run.append(Assign((target,), (_selected(mask, Binary(op, target, value), target),)))
                case Store(pointer=pointer, index=index, value=value):
                    run.append(Store(pointer, index, _selected([*self._stores, *mask], value, pointer[index])))
                case If(branches=branches, otherwise=otherwise) if any(self._varies(test) for test, _ in branches):
                    blocks = [*inner_blocks(statement)]
                    others: list[Expr] = []
                    for test, inner in [*branches, (None, otherwise or [])]:
                        own = [] if test is None else [self._named(test, blocks, run)]
                        self._add(inner, [*mask, *others, *own], run, result)
                        others += [Unary("not", e) for e in own]
                case Assign(targets=(target,), values=(Call(function="any_of", arguments=(test,)),)):
                    self._close(run, result)
                    result.append(Assign((target,), (Number(False),)))
                    result += self._run([Assign((target,), (Binary("or", target, test),))])
                case For():
                    self._close(run, result)
                    result.append(self._for(statement, mask))
                case While(test=test, body=body) if not self._varies(test):
                    self._close(run, result)
                    result.append(While(test, self._block(body, mask)))
                case _ if not any(map(self._varies, expressions_of(statement))):
                    self._close(run, result)
                    result.append(with_blocks(statement, lambda inner: self._block(inner, mask)))
                case _:
                    raise CannotGoInward(f"{type(statement).__name__} depends on {self._loop.variable}")

    def _close(self, run: Block, result: Block) -> None:
        if run:
            result += self._run([*run])
            run.clear()

    def _run(self, run: Block) -> Block:
        """A piece of straight code as a loop. Values that are the same for all iterations are loaded before the
        loop."""
        before: Block = []
        names: dict[str, Name] = {}

        def hoisted(e: Expr) -> Expr | None:
            if not isinstance(e, Load) or self._varies(e):
                return None
            name = names.get(e.text)
            if name is None:
                name = names[e.text] = Name(f"same{len(names)}", e.type)
                before.append(Assign((name,), (e,)))
            return name

        run = [with_values(statement, lambda e: rewritten(e, hoisted)) for statement in run]
        return [*before, For(self._loop.variable, self._start, self._stop, 1, run)]

    def _for(self, loop: For, mask: list[Expr]) -> For:
        first, at_least = self._bound(loop.start or ZERO, "maximum")
        last, below = self._bound(loop.stop, "minimum")
        own = between(loop.variable, at_least, below)
        body = self._block(loop.body, [*mask, *own])
        return replace(loop, start=None if is_number(first, 0) else first, stop=last, body=body)

    def _bound(self, bound: Expr, of: str) -> tuple[Expr, Expr | None]:
        """The bound of a loop that holds for all iterations, and the bound that differs between iterations, or None."""
        if not self._varies(bound):
            return bound, None
        if isinstance(bound, Call) and bound.function == of:
            same = [e for e in bound.arguments if not self._varies(e)]
            own = [e for e in bound.arguments if self._varies(e)]
            if len(same) == len(own) == 1:
                return same[0], own[0]
        raise CannotGoInward(f"{bound} depends on {self._loop.variable}, and is no {of} with a number that does not")

    def _named(self, test: Expr, branches: list[Block], run: Block) -> Expr:
        """The test, as a value of its own if a branch changes its parts."""
        changed: set[str] = set()
        for statement in (s for branch in branches for s in walk(branch)):
            match statement:
                case Assign(targets=targets):
                    changed |= {target.name for target in targets}
                case Store(pointer=pointer):
                    changed.add(pointer.name)
        if changed.isdisjoint(test.names):
            return test
        name = Name(f"test{self._tests}", "bool")
        self._tests += 1
        run.append(Assign((name,), (test,)))
        self._varying.add(name.name)
        return name


class _Kept:
    """Scalars that live longer than a piece, as elements of arrays; conditions are 0 or 1 there. Other integers become
    numbers of another type."""

    def __init__(self, arrays: Mapping[str, Name], conditions: set[str], variable: Name) -> None:
        self._arrays, self._conditions, self._variable = arrays, conditions, variable

    def block(self, block: Block) -> Block:
        return [self._statement(statement) for statement in block] if self._arrays else block

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Assign(targets=(target,), values=(value,)) if target.name in self._arrays:
                array = self._arrays[target.name]
                type_ = array.type.removesuffix("*")
                value = self._value(value)
                if type_ == array.type:
                    return Assign((array,), (_cast(value, type_),))
                if target.name in self._conditions:
                    value = Call("select", (value, _cast(Number(1), type_), _cast(Number(0), type_)))
                return Store(array, self._variable, _cast(value, type_))
        return with_values(statement, self._value)

    def _value(self, e: Expr) -> Expr:
        return rewritten(e, self._element, _of_one_type)

    def _element(self, e: Expr) -> Expr | None:
        if not isinstance(e, Name) or e.name not in self._arrays:
            return None
        array = self._arrays[e.name]
        now = array[self._variable] if array.type.endswith("*") else array
        return now.ne(_cast(Number(0), now.type)) if e.name in self._conditions else now


def _of_one_type(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The operation on other operands, all of the type that one of them has now."""
    changed = [new.type for new, old in zip(parts, e.parts, strict=True) if new.type != old.type]
    if changed and isinstance(e, Binary):
        parts = tuple([_cast(part, changed[0]) for part in parts])
    elif changed and isinstance(e, Call) and e.function == "select":
        parts = parts[0], *[_cast(part, changed[0]) for part in parts[1:]]
    return with_new_parts(e, parts)


def _cast(e: Expr, type_: str) -> Expr:
    return e if e.type == type_ else Call(type_, (e,))


def _selected(mask: list[Expr], value: Expr, before: Expr) -> Expr:
    return Call("select", (all_of(mask), value, before)) if mask else value


def between(counter: Expr, at_least: Expr | None, below: Expr | None) -> list[Expr]:
    """The conditions ``at_least <= counter < below``."""
    if at_least is not None and below is not None and below.text == (at_least + 1).text:
        return [counter.eq(at_least)]
    return [*([] if at_least is None else [counter >= at_least]), *([] if below is None else [counter < below])]


def temporaries(block: Block) -> frozenset[str]:
    """The names that are only used in blocks that assign to them before; no value of them leaves its block."""
    assigned: set[str] = set()
    foreign: set[str] = set()

    def visit(block: Block) -> set[str]:
        own: set[str] = set()
        inside: set[str] = set()
        for statement in block:
            for whole in expressions_of(statement):
                foreign.update(name for name in whole.names if name not in own)
            for inner in inner_blocks(statement):
                inside |= visit(inner)
            if isinstance(statement, Assign):
                own.update(target.name for target in statement.targets)
        assigned.update(own)
        foreign.update(own & inside)
        return own | inside

    visit(block)
    return frozenset(assigned - foreign)


def _exposed(block: Block) -> Iterator[Name]:
    """The names that straight code reads before it assigns to them."""
    assigned: set[str] = set()
    for statement in block:
        for whole in expressions_of(statement):
            yield from (p for p in whole.walk() if isinstance(p, Name) and p.name not in assigned)
        if isinstance(statement, Assign):
            assigned |= {target.name for target in statement.targets}

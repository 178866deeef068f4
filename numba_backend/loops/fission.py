"""Compute ahead, for a block of iterations, what waits for no other iteration (loop fission).

    for t in range(n):                     ahead0 = local_array(64, float32)
        r = cos(x[t])                      for first in range(0, n, 64):
        s = s * r - f(s)         ->            last = minimum(first + 64, n)
                                               for at in range(last - first):
                                                   ahead0[at] = cos(x[first + at])
                                               for t in range(first, last):
                                                   r = ahead0[t - first]
                                                   s = s * r - f(s)

A loop whose iterations wait for each other has no vectors. The random numbers of a sampler, and what a filter makes of
its input, depend on the counter alone: LLVM makes vectors of the loop that computes them. Without elements of arrays it
always computes a whole block, so that no code is needed for what is left over.

A product that the rest adds stays there, and its factors are computed ahead: the two are one multiply-add, which rounds
once, as in the loop that is not split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

from ...hlo.support.lazy import lazy_property
from ...hlo.support.observed import ObservedSize
from .affine import Indices
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, Unary, minimum
from .forward import assigned
from .jam import OF_FUNCTION, variable_waits
from .rewrite import rewritten, with_names, with_new_parts
from .small_loops import Straight, straightened
from .statements import (
    Assign,
    Block,
    Break,
    Continue,
    For,
    If,
    LocalArray,
    Statement,
    Store,
    expressions_of,
    names_of,
    walk,
    with_values,
)
from .straight_lines import Ranges, is_straight, loads_of, with_changed_loops
from .typing import BITS, is_float, is_integer, pointer_to
from .vectorized_calls import LONG

BLOCK = 64
"""Iterations of a block, at most."""
LEAST_TRIPS = 32
PAYS = 8
"""Operations for a value that goes through memory."""
_CHEAP = 2
"""Operations of a value that is as well computed again."""
MOST = 8
"""Values of an iteration that go through memory."""
MOST_OPERATIONS = 2_000
"""Operations of a loop whose small inner loops are written out: more take long to compile."""
_OF_CONVERSION = 6
"""Operations that a conversion of a float to an integer counts as."""


def split_ahead(block: Block, sizes: Mapping[str, int], fresh: Callable[[str], str]) -> Block:
    """The statements with such loops split. `sizes`: the numbers that arguments stand for; `fresh`: a new name like a
    given one."""
    fission = _Fission(sizes, fresh, block)
    result = with_changed_loops(block, sizes, fission.loop)
    if not fission.has_straightened:
        return result
    used = set(names_of(result))
    return [s for s in result if not isinstance(s, LocalArray) or s.name.name in used]


class _Fission:
    def __init__(self, sizes: Mapping[str, int], fresh: Callable[[str], str], program: Block) -> None:
        self._sizes, self._fresh, self._program = sizes, fresh, program
        self.has_straightened = False
        """True if a loop has variables for the elements of local arrays."""

    @lazy_property
    def _reads(self) -> Counter[str]:
        """How often the whole program reads names."""
        return Counter(names_of(self._program))

    @lazy_property
    def _arrays(self) -> dict[str, LocalArray]:
        return {s.name.name: s for s in walk(self._program) if isinstance(s, LocalArray)}

    def loop(self, loop: For, ranges: Ranges, inner: Callable[[], Block]) -> Block:
        """What computes a loop: see `with_changed_loops`."""
        changed = replace(loop, body=inner())
        return self._split(loop.body, changed, ranges) or [changed]

    def _split(self, before: Block, loop: For, ranges: Ranges) -> Block | None:
        """`before`: the loop's body before loops in it were split."""
        if loop.kind != "range" or loop.step != 1:
            return None
        changing = set(assigned(loop.body))
        ends = (loop.stop,) if loop.start is None else (loop.start, loop.stop)
        if any(e.loads or not changing.isdisjoint(e.names) for e in ends):
            return None
        if not _waits(loop.body) or _leaves(loop.body):
            return None
        within = Counter(names_of(before))
        outside = {name for name in assigned(before) if self._reads[name] > within[name]}

        def split(fresh: Callable[[str], str], straight: Straight | None) -> tuple[int, Block] | None:
            of, read = (loop, outside) if straight is None else (straight.loop, outside | set(names_of(straight.after)))
            return self._tried(of, ranges, read, fresh)

        @lru_cache(1)
        def is_better_straight() -> bool | None:
            """If the loop should be split with its small loops written out; None if it should not be split."""
            found, straight = split(_any_name, None), self._straightened(loop, _any_name)
            whole = None if straight is None else split(_any_name, straight)
            return (None if found is None else False) if whole is None else found is None or whole[0] > found[0]

        def stays() -> bool:
            return is_better_straight() is None

        trips: Any = ranges[loop.variable.name].count
        if trips is None:
            return None
        if isinstance(trips, ObservedSize):
            is_short = trips.is_less(LEAST_TRIPS, stays)
        else:
            is_short = trips < LEAST_TRIPS
        if is_short or stays():
            return None
        straight = self._straightened(loop, self._fresh) if is_better_straight() else None
        found = split(self._fresh, straight)
        assert found is not None
        if straight is None:
            return found[1]
        self.has_straightened = True
        return [*straight.before, *found[1], *straight.after]

    def _straightened(self, loop: For, fresh: Callable[[str], str]) -> Straight | None:
        found = straightened(loop, self._arrays, self._reads, fresh)
        return None if found is None or _size(found.loop.body) > MOST_OPERATIONS else found

    def _tried(
        self, loop: For, ranges: Ranges, outside: set[str], fresh: Callable[[str], str]
    ) -> tuple[int, Block] | None:
        """The operations that are computed ahead, and the statements."""
        if _size(loop.body) < PAYS:
            return None
        changing = set(assigned(loop.body))
        indices = Indices(self._sizes, ranges, dict.fromkeys(changing))
        return _Loop(loop, indices, changing, outside, fresh).written()


def _any_name(stem: str) -> str:
    """A new name, for statements that are not kept."""
    return f"{stem}_{next(_NUMBERS)}"


_NUMBERS = count()


def _size(body: Block) -> int:
    """The operations of a loop's body of which a part can be computed ahead."""
    return sum(_operations(e) for s in body if isinstance(s, (Assign, Store)) for e in expressions_of(s))


def _leaves(block: Block) -> bool:
    """True if a `break` or `continue` in a loop's body is the loop's own."""
    return any(
        isinstance(s, (Break, Continue))
        or (isinstance(s, If) and any(map(_leaves, (*(body for _, body in s.branches), s.otherwise or []))))
        for s in block
    )


class _Loop:
    """One loop. `outside`: the names that it assigns to and that are read after it, too."""

    def __init__(
        self, loop: For, indices: Indices, changing: set[str], outside: set[str], fresh: Callable[[str], str]
    ) -> None:
        self._loop, self._indices, self._fresh = loop, indices, fresh
        self._changing, self._outside = changing, outside
        self._added = _added(loop.body)
        self._stored = {s.pointer.name for s in walk(loop.body) if isinstance(s, Store)}
        self._now: dict[str, Name] = {}
        """The names, in the code ahead, of values that wait for nothing, by those in the loop at this point."""
        self._ahead: dict[str, Expr] = {}
        """The values of these names; in the order in which they are computed."""
        self._cheap: set[str] = set()
        """Those that are as well computed again."""
        self._kept: dict[str, tuple[Name, Name]] = {}
        """The array of a value that the rest reads, and the name of the value."""
        self._rest: list[tuple[Statement, Name | None]] = []
        """The loop's statements, and if a statement only names such a value, its name."""

    def written(self) -> tuple[int, Block] | None:
        """The operations that are computed ahead, and the loops."""
        for statement in self._loop.body:
            self._read(statement)
        rest = self._remaining()
        needed = self._needed()
        if not needed or len(self._kept) > MOST or not _waits(rest):
            return None
        cost = sum(_operations(self._ahead[name]) for name in needed)
        if cost < PAYS * len(self._kept):
            return None
        if any(name.type not in BITS for _, name in self._kept.values()):
            return None  # bool has no array
        return cost, self._loops([Assign((Name(n, self._ahead[n].type),), (self._ahead[n],)) for n in needed], rest)

    def _read(self, statement: Statement) -> None:
        match statement:
            case Assign(targets=(target,), values=(value,)) if self._is_free(value):
                if target.name in self._added:
                    value = _with_factors(value, self._factor) or value
                    statement = Assign((target,), (value,))
                name = self._now[target.name] = self._named(target.name, value)
                self._rest.append((statement, name))
                self._indices.known[target.name] = self._indices.of(value) if is_integer(value.type) else None
            case Assign() | Store():
                self._rest.append((with_values(statement, self._with_parts_ahead), None))
                self._forget(statement)
            case _:
                self._rest.append((statement, None))
                self._forget(statement)

    def _factor(self, e: Expr) -> Expr:
        """The factor of a product that is computed ahead: a name, so that the product may stay in the rest."""
        if _operations(e) <= _CHEAP:
            return e
        name = Name(self._fresh("factor"), e.type)
        self._read(Assign((name,), (e,)))
        return name

    def _forget(self, statement: Statement) -> None:
        for name in assigned([statement]):
            self._now.pop(name, None)
            self._indices.known[name] = None

    def _named(self, stem: str, value: Expr) -> Name:
        own = with_names(value, self._now)
        name = Name(self._fresh(stem), value.type)
        self._ahead[name.name] = own
        is_short = not own.loads and _operations(own) <= _CHEAP
        if is_short and (self._ahead.keys() - self._cheap).isdisjoint(own.names):
            self._cheap.add(name.name)
        return name

    def _is_free(self, e: Expr) -> bool:
        """True if a value depends on the counter alone, and on what does not change."""
        if any(name in self._changing and name not in self._now for name in e.names):
            return False
        return all(map(self._is_in_order, e.loads))

    def _is_in_order(self, load: Load) -> bool:
        """True for an element of an array that is only read, in the order of the counter."""
        known = self._indices.of(load.index)
        own = self._loop.variable.name
        return load.pointer.name not in self._stored and known is not None and known.get(own, 0) in (0, 1)

    def _with_parts_ahead(self, e: Expr) -> Expr:
        """A value of the rest, with its free parts computed ahead if they take long."""
        return rewritten(e, self._part_ahead)

    def _part_ahead(self, part: Expr) -> Expr | None:
        if self._takes_long(part):
            return self._element(self._named("free", part))
        return with_new_parts(part, tuple(map(self._addend, part.parts))) if _is_sum(part) else None

    def _addend(self, e: Expr) -> Expr:
        found = _with_factors(e, self._factor_ahead) if self._takes_long(e) else None
        return self._with_parts_ahead(e) if found is None else found

    def _factor_ahead(self, e: Expr) -> Expr:
        """A factor of a free product that takes long."""
        return self._element(self._named("free", e)) if _operations(e) >= PAYS // 2 else self._with_parts_ahead(e)

    def _takes_long(self, e: Expr) -> bool:
        """True for a free part that takes long."""
        operations = _operations(e)
        if operations < PAYS // 2 or (operations < PAYS and self._values_ahead(e) < 2):
            return False
        return self._is_free(e)

    def _values_ahead(self, e: Expr) -> int:
        """How many values would go through memory if the rest computed this one."""
        known = {self._now[name].name for name in e.names if name in self._now}
        return len(known - self._cheap)

    def _element(self, name: Name) -> Expr:
        """What the rest reads in the place of a name of the code ahead. The index is that of the block's iteration."""
        found = self._kept.get(name.name)
        if found is None:
            found = self._kept[name.name] = Name(self._fresh("ahead"), pointer_to(name.type)), name
        return Load(found[0], _IN_BLOCK)

    def _remaining(self) -> Block:
        """The statements of the rest: values that they read are computed again, or loaded."""
        body = [statement for statement, name in self._rest if name is None]
        read, added = {*names_of(body), *self._outside}, _added(body)
        result: Block = []
        for statement, name in reversed(self._rest):
            if name is None:
                result.append(statement)
                continue
            assert isinstance(statement, Assign)
            target, value = statement.targets[0].name, statement.values[0]
            if target not in read:
                continue
            is_product = _with_factors(value, lambda factor: factor) is not None
            if name.name in self._cheap or (is_product and target in added):
                read.update(value.names)
                result.append(statement)
            else:
                result.append(Assign(statement.targets, (self._element(name),)))
        return result[::-1]

    def _needed(self) -> list[str]:
        """The names that must be computed ahead, in order."""
        wanted = set(self._kept)
        for name in reversed(self._ahead):
            if name in wanted:
                wanted.update(self._ahead[name].names)
        return [name for name in self._ahead if name in wanted]

    def _loops(self, ahead: Block, rest: Block) -> Block:
        loop, count = self._loop, self._length()
        first, last, at = (Name(self._fresh(stem)) for stem in ("first", "last", "at"))
        whole = not any(load for statement in ahead for load in loads_of(statement))
        values = {loop.variable.name: first + at}
        body: Block = [with_values(s, lambda value: with_names(value, values)) for s in ahead]
        body += [Store(array, at, name) for array, name in self._kept.values()]
        inside = {_IN_BLOCK.name: loop.variable - first}
        return [
            *(LocalArray(array, count, name.type) for array, name in self._kept.values()),
            For(first, loop.start or ZERO, loop.stop, count, [
                Assign((last,), (minimum(first + count, loop.stop),)),
                For(at, None, Number(count) if whole else last - first, 1, body),
                For(loop.variable, first, last, 1, [_with_values_within(s, inside) for s in rest]),
            ]),
        ]  # fmt: skip

    def _length(self) -> int:
        """The iterations of a block: no more than the loop has if it is itself a part of a longer one."""
        match self._loop.stop:
            case Call(function="minimum", arguments=(Binary(op="+", left=left, right=Number(value=value)), _)) if (
                self._loop.start is not None and left.text == self._loop.start.text
            ):
                return min(int(value), BLOCK)
        return BLOCK


_IN_BLOCK = Name("in_block")
"""Stands for the number of an iteration in its block."""


def _with_values_within(statement: Statement, values: Mapping[str, Expr]) -> Statement:
    return with_values(statement, lambda value: with_names(value, values))


def _is_sum(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op in ("+", "-") and is_float(e.type)


def _added(block: Block) -> set[str]:
    """The names of values that are added."""
    found: set[str] = set()
    for statement in walk(block):
        for part in (part for e in expressions_of(statement) for part in e.walk()):
            for addend in part.parts if _is_sum(part) else ():
                while isinstance(addend, Unary):
                    addend = addend.operand
                if isinstance(addend, Name):
                    found.add(addend.name)
    return found


def _with_factors(e: Expr, change: Callable[[Expr], Expr]) -> Expr | None:
    """A product of floats, or the negative of one, with changed factors; None for other values."""
    if isinstance(e, Unary) and e.op == "-":
        operand = _with_factors(e.operand, change)
        return None if operand is None else with_new_parts(e, (operand,))
    if isinstance(e, Binary) and e.op == "*" and is_float(e.type):
        return with_new_parts(e, tuple(map(change, e.parts)))
    return None


def _operations(e: Expr) -> int:
    found = 0
    for part in e.walk():
        if isinstance(part, Call) and part.function in LONG:
            found += OF_FUNCTION
        elif isinstance(part, Call) and part.function.startswith("convert_f"):
            found += _OF_CONVERSION
        elif isinstance(part, (Binary, Unary, Call, Load)):
            found += 1
    return found


def _waits(rest: Block) -> bool:
    """True if LLVM makes no vectors of a loop with this body: it has inner blocks, or iterations wait for others."""
    if not is_straight(rest):
        return True
    loaded = {load.pointer.name for statement in rest for load in loads_of(statement)}
    return variable_waits(rest) or any(isinstance(s, Store) and s.pointer.name in loaded for s in rest)

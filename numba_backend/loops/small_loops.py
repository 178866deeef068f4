"""Write out the small inner loops of a loop, with variables for the elements of their local arrays.

    for t in range(n):                      for t in range(n):
        for i in range(2):                      v_0 = f(t, 0)
            v[i] = f(t, i)         ->           v_1 = f(t, 1)
        x = x * v[0] + v[1]                     x = x * v_0 + v_1

LLVM would make the same of them. Transforms of the outer loop need it earlier: a value in an array waits for what the
array holds, and a loop over two elements fills no vector, while all iterations of the outer loop do. The keys of random
numbers are such arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from ...hlo.support.records import dataclass
from .expressions import Call, Expr, Load, Name, Number
from .rewrite import Substitution, rewritten
from .statements import Assign, Block, Comment, For, LocalArray, Statement, Store, names_of, with_values
from .straight_lines import is_straight, loads_of, targets
from .typing import BITS

MOST_BITS = 128
"""The elements of a small loop, together: half a vector, of which the other half has nothing to do."""
MOST_ITERATIONS = 4


@dataclass(frozen=True, slots=True)
class Straight:
    """A loop with its small loops written out; `before` loads the variables that it begins with, `after` stores those
    that are of interest after it."""

    before: Block
    loop: For
    after: Block


def straightened(
    loop: For, arrays: Mapping[str, LocalArray], reads: Counter[str], fresh: Callable[[str], str]
) -> Straight | None:
    """The loop with its small loops written out; None if it has none. `arrays`: the local arrays of the program;
    `reads`: how often the program reads names; `fresh`: a new name like a given one."""
    if not any(map(_is_small, loop.body)):
        return None
    body: Block = []
    for statement in loop.body:
        if isinstance(statement, For) and _is_small(statement):
            body += _written_out(statement, reads, fresh)
        else:
            body.append(statement)
    elements = _Elements(loop, body, arrays, reads, fresh)
    body = [elements.statement(statement) for statement in body]
    return Straight(elements.before(), replace(loop, body=body), elements.after())


def _is_small(statement: Statement) -> bool:
    match statement:
        case For(start=None, stop=Number(value=int() as count), step=1, body=body, kind="range" | "independent"):
            if count > MOST_ITERATIONS or not is_straight(body):
                return False
            types = {s.pointer.type[:-1] for s in body if isinstance(s, Store)}
            return count * max((BITS.get(t, 64) for t in types), default=64) <= MOST_BITS
    return False


def _written_out(loop: For, reads: Counter[str], fresh: Callable[[str], str]) -> Block:
    """The iterations one after the other. Names of values that one iteration needs alone are other ones in each."""
    assert isinstance(loop.stop, Number)
    own, known = set[str](), set[str]()
    within = Counter(names_of(loop.body))
    for statement in loop.body:
        known.update(names_of([statement]))
        for target in targets(statement):
            if target.name not in known and reads[target.name] == within[target.name]:
                own.add(target.name)
    result: Block = []
    for number in range(int(loop.stop.value)):
        changed = own if number else ()
        written = Substitution({loop.variable.name: Number(number)}, {}, partial(_named, fresh, changed))
        result += [s for s in written.block(loop.body) if not isinstance(s, Comment)]
    return result


def _named(fresh: Callable[[str], str], changed: Collection[str], name: str) -> str:
    return fresh(name) if name in changed else name


class _Elements:
    """Variables for the elements of those local arrays that straight code uses at known indices alone."""

    def __init__(
        self, loop: For, body: Block, arrays: Mapping[str, LocalArray], reads: Counter[str],
        fresh: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._fresh = fresh
        inside = Counter(names_of(loop.body))
        used = Counter(_used(body))
        written_out = Counter(names_of(body))
        self._chosen = {name for name in arrays if used[name] and used[name] == written_out[name]}
        self._after = {name for name in self._chosen if reads[name] > inside[name]}
        self._names: dict[tuple[str, int], tuple[Name, Name]] = {}
        """Arrays and variables, by an array's name and the number of an element."""
        self._first: list[tuple[str, int]] = []
        """The elements that are loaded before the loop: iterations read them before they store them, or they are read
        elsewhere. Those that are stored, too, are stored to the array after it: it may run again."""
        self._stored: set[tuple[str, int]] = set()

    def statement(self, statement: Statement) -> Statement:
        changed = with_values(statement, self._value)
        if isinstance(changed, Store) and changed.pointer.name in self._chosen:
            assert isinstance(changed.index, Number)
            variable = self._variable(changed.pointer, int(changed.index.value), is_read=False)
            value = changed.value
            return Assign((variable,), (value if value.type == variable.type else Call(variable.type, (value,)),))
        return changed

    def before(self) -> Block:
        return [
            Assign((variable,), (Load(array, Number(number)),))
            for (_, number), (array, variable) in self._in_order(self._first)
        ]

    def after(self) -> Block:
        stored = [key for key in self._first if key in self._stored]
        return [Store(array, Number(number), variable) for (_, number), (array, variable) in self._in_order(stored)]

    def _in_order(self, keys: list[tuple[str, int]]) -> list[tuple[tuple[str, int], tuple[Name, Name]]]:
        return [(key, self._names[key]) for key in keys]

    def _value(self, e: Expr) -> Expr:
        return rewritten(e, self._element)

    def _element(self, e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.pointer.name not in self._chosen:
            return None
        assert isinstance(e.index, Number)
        return self._variable(e.pointer, int(e.index.value), is_read=True)

    def _variable(self, array: Name, number: int, is_read: bool) -> Name:
        key = array.name, number
        if not is_read:
            self._stored.add(key)
        if key not in self._names:
            self._names[key] = array, Name(self._fresh(f"{array.name}_"), array.type[:-1])
            if is_read or array.name in self._after:  # perhaps the loop never runs
                self._first.append(key)
        return self._names[key][1]


def _used(body: Block) -> list[str]:
    """The names of arrays in straight code, once for each use at a known index."""
    found: list[str] = []
    for statement in body:
        if not isinstance(statement, (Assign, Store)):
            continue
        found += [load.pointer.name for load in loads_of(statement) if isinstance(load.index, Number)]
        if isinstance(statement, Store) and isinstance(statement.index, Number):
            found.append(statement.pointer.name)
    return found

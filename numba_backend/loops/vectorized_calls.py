"""A transform: vectorise independent calls of long functions in straight code: one loop over a local array makes them.

    a = sin(x)                  calls0 = local_array(8, float32)
    b = sin(y)         ->       calls0[0] = x
    ...                         calls0[1] = y
                                ...
                                for j in range(8):
                                    calls0[j] = sin(calls0[j])

LLVM makes vectors of a loop, and not of calls that follow each other in straight code. Generated models apply the same
functions to many scalars, and such code then runs two to five times faster. Results are the same bits. Such calls come
from different instructions, even different kernels of a native loop: only the finished program shows them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import field, replace

from ...hlo.support.records import dataclass
from .expressions import Call, Expr, Name, Number
from .rewrite import rewritten, with_names
from .statements import Assign, Block, Comment, For, LocalArray, Statement, Store, expressions_of, with_values
from .typing import pointer_to

LONG = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "exp", "expm1", "log",
    "log1p", "logistic", "pow", "sin", "sinh", "tan", "tanh",
))  # fmt: skip
"""Functions of a hundred instructions or so."""

LEAST = 8
"""Calls of one function that are worth the way through memory."""
_LANES = {"float32": 8, "float64": 4}
"""Elements of a vector of 32 bytes. An array has a multiple of them, so that no call is left over."""


def vectorized_calls(block: Block, fresh: Callable[[str], str]) -> Block:
    """The statements, reordered so that calls of one function can share a loop. Inner blocks are left as they are: LLVM
    vectorises loops itself. `fresh` gives unused names."""
    result: Block = []
    for part in _straight(block):
        result += _together(part, fresh)
    return result


# ---- what may change places


@dataclass
class _Straight:
    """Statements that may be put in any order in which values are made before they are used: no memory is both read and
    written. A name may get several values; see `_Versions`."""

    statements: Block = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)

    def takes(self, statement: Statement) -> bool:
        """Adds the statement, unless it must stay behind the others."""
        loaded = {load.pointer.name for e in expressions_of(statement) for load in e.loads}
        stored = set[str]()
        match statement:
            case Comment() | Assign(targets=(_,)):
                pass
            case Store(pointer=pointer):
                stored = {pointer.name}
                if stored & (loaded | self.written):
                    return False
            case _:
                return False
        if loaded & self.written or stored & self.read:
            return False
        self.read |= loaded
        self.written |= stored
        self.statements.append(statement)
        return True


def _straight(block: Block) -> Iterator[Block]:
    """The block in parts: each is statements that may change places, or one other statement."""
    open_ = _Straight()
    for statement in block:
        if open_.takes(statement):
            continue
        if open_.statements:
            yield open_.statements
        open_ = _Straight()
        if not open_.takes(statement):
            yield [statement]
    if open_.statements:
        yield open_.statements


# ---- the order


def _together(block: Block, fresh: Callable[[str], str]) -> Block:
    calls = [p for s in block for e in expressions_of(s) for p in e.walk() if _is_long(p)]
    if len(calls) < LEAST:
        return block
    versions, order = _Versions(fresh), _Order()
    statements = [order.statement(versions.of(s)) for s in block if not isinstance(s, Comment)]
    groups: dict[tuple[int, str, tuple[str, ...]], list[_Waiting]] = {}
    for call in order.calls:
        groups.setdefault((call.level, call.function, tuple(a.type for a in call.arguments)), []).append(call)
    pieces: list[tuple[int, bool, Callable[[], Block]]] = []
    for (level, _, _), found in groups.items():
        if len(found) >= LEAST:
            pieces.append((level, False, functools.partial(_loop, found, fresh)))
    if not pieces:
        return block
    pieces += [(level, True, functools.partial(_finished_statement, s)) for level, s in statements]
    result: Block = [s for s in block if isinstance(s, Comment)]
    for _, _, write in sorted(pieces, key=lambda piece: piece[:2]):  # of one level, the loops come first
        result += write()
    return result + versions.at_the_end()


def _is_long(e: Expr) -> bool:
    is_call = isinstance(e, Call) and e.function in LONG
    return is_call and e.type in _LANES and all(a.type == e.type for a in e.parts)


class _Versions:
    """Names for the values that a name gets after it was read or assigned; the last one is assigned at the end.

    v0 = s0                     v0 = s0
    s0 = sin(v0)       ->       next0 = sin(v0)
    v1 = s0                     v1 = next0
                                s0 = next0
    """

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self._fresh = fresh
        self._seen: set[str] = set()
        self._now: dict[str, Name] = {}
        self._targets: dict[str, Name] = {}

    def of(self, statement: Statement) -> Statement:
        """The statement, which reads the values that names have now."""
        self._seen.update(name for e in expressions_of(statement) for name in e.names)
        match statement:
            case Assign(targets=(target,), values=(value,)):
                value = self._reading(value)
                if target.name in self._seen:
                    version = Name(self._fresh("next"), target.type)
                    self._now[target.name], self._targets[target.name] = version, target
                    target = version
                self._seen.add(target.name)
                return Assign((target,), (value,))
        return with_values(statement, self._reading)

    def _reading(self, e: Expr) -> Expr:
        return with_names(e, self._now)

    def at_the_end(self) -> Block:
        """The last values, for later statements."""
        return [Assign((self._targets[name],), (version,)) for name, version in self._now.items()]


class _Waiting(Call):
    """A call of a long function. `level`: the long calls, one after the other, that must be made for it, with its own.
    `result` replaces it once it has a place in an array."""

    __slots__ = ("level", "result")
    level: int
    result: Expr | None

    def with_parts(self, parts: tuple[Expr, ...]) -> _Waiting:
        copy = _Waiting(self.function, parts)
        copy.level, copy.result = self.level, self.result
        return copy


class _Order:
    """The levels of a straight piece: how many long calls must be made, one after the other, for a statement."""

    def __init__(self) -> None:
        self.calls: list[_Waiting] = []
        self._levels: dict[str, int] = {}

    def statement(self, statement: Statement) -> tuple[int, Statement]:
        """The level, and the statement with its calls marked."""
        match statement:
            case Assign(targets=(target,), values=(value,)):
                level, marked = self._expression(value)
                self._levels[target.name] = level
                return level, Assign((target,), (marked,))
            case Store(index=index, value=value):
                (one, index), (other, value) = self._expression(index), self._expression(value)
                return max(one, other), replace(statement, index=index, value=value)
            case _:
                raise TypeError(type(statement))

    def _expression(self, e: Expr) -> tuple[int, Expr]:
        if isinstance(e, Name):
            return self._levels.get(e.name, 0), e
        parts = [self._expression(p) for p in e.parts]
        level = max((at for at, _ in parts), default=0)
        marked = e.with_parts(tuple(p for _, p in parts)) if parts else e
        if not _is_long(e):
            return level, marked
        assert isinstance(marked, Call)
        waiting = _Waiting(marked.function, marked.arguments)
        waiting.level, waiting.result = level + 1, None
        self.calls.append(waiting)
        return level + 1, waiting


def _finished_statement(statement: Statement) -> Block:
    """The statement with the results of calls in their places."""
    return [with_values(statement, _finished)]


def _finished(e: Expr) -> Expr:
    def result(part: Expr) -> Expr | None:
        if not isinstance(part, _Waiting):
            return None
        return part.result or Call(part.function, tuple([_finished(a) for a in part.arguments]))

    return rewritten(e, result)


def _loop(calls: list[_Waiting], fresh: Callable[[str], str]) -> Block:
    """The calls as a loop; places without a call repeat the last one."""
    first = calls[0]
    lanes = _LANES[first.type]
    count = -(-len(calls) // lanes) * lanes
    arrays = [Name(fresh("calls"), pointer_to(first.type)) for _ in first.arguments]
    result: Block = [LocalArray(array, count, first.type) for array in arrays]
    for k in range(count):
        arguments = calls[min(k, len(calls) - 1)].arguments
        result += [Store(array, Number(k), _finished(a)) for array, a in zip(arrays, arguments, strict=True)]
    place = Name(fresh("call"))
    made = Call(first.function, tuple(array[place] for array in arrays))
    result.append(For(place, None, Number(count), 1, [Store(arrays[0], place, made)]))
    for k, call in enumerate(calls):
        call.result = arrays[0][k]
    return result

"""A transform: loops that test the remainder of their counter go period by period, without the tests.

    for i in range(lo, hi):                     for i in range(lo, first):  # the same as on the left
        if i % 2 == 0 and i // 2 < n:               ...
            part0 = x[i // 2]                   for period in range(first // 2, last // 2):
        else:                                       if period < n:
            part0 = c0                                  part0 = x[period]
        out[i] = part0                              else:
                                                        part0 = c0
                                                    out[period * 2] = part0
                                                    part0 = c0
                                                    out[period * 2 + 1] = part0
                                                for i in range(last, hi):
                                                    ...

Such are the gradients of strided slices and of diagonals, which `pad` with holes. A short period is written out, for
all tests with its length: LLVM makes vectors of what is left, which shuffle. In a long one, or one of unknown length,
the iteration with the remainder 0 comes first, and then a loop over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .expressions import ZERO, Binary, Call, Expr, Name, Number, all_of, call, is_number, minus, plus, times
from .forward import assigned
from .rewrite import Substitution
from .split import Counter, folded, split_loops, sums_of, tests_of
from .statements import Assign, Block, For, If, walk, with_blocks

MOST_PERIOD = 4
"""Iterations of a period that is written out."""
MOST_STATEMENTS = 24
"""Statements of a loop that is written several times."""
SHORT = 16
"""Iterations for which code is not worth its place."""


def by_residues(block: Block, fresh: Callable[[str], str]) -> Block:
    """The statements, with the innermost loops that test remainders in parts; itself if there are none."""
    if not any(isinstance(statement, If) for statement in walk(block)):
        return block
    result: Block = []
    for statement in block:
        parts = _parts(statement, fresh) if isinstance(statement, For) else None
        result += [with_blocks(statement, lambda inner: by_residues(inner, fresh))] if parts is None else parts
    return result if any(new is not old for new, old in zip(result, block)) or len(result) != len(block) else block


def _parts(loop: For, fresh: Callable[[str], str]) -> Block | None:
    inner = list(walk(loop.body))
    if loop.step != 1 or loop.kind != "range" or len(inner) > MOST_STATEMENTS or _is_short(loop):
        return None
    if any(not isinstance(statement, (Assign, If)) and hasattr(statement, "body") for statement in inner):
        return None
    names = list(assigned(loop.body))
    counter = Counter(loop.variable.name, frozenset((*names, loop.variable.name)), {})
    counter = replace(counter, sums=dict(sums_of(loop.body, counter)))
    found = list(dict.fromkeys(_remainders(loop.body, counter)))
    if not found or len({period.text for period, _ in found}) > 1:
        return None
    body = [s for s in loop.body if not (isinstance(s, Assign) and s.targets[0].name in counter.sums)]
    period, offset = found[0]
    plain = replace(loop, body=body)
    if isinstance(period, Number) and 2 <= int(period.value) <= MOST_PERIOD:
        if all(isinstance(each, Number) for _, each in found):
            return _written_out(plain, counter, int(period.value), fresh)
        return None
    return _one_by_one(plain, counter, period, offset, fresh) if len(found) == 1 else None


def _is_short(loop: For) -> bool:
    """True for a loop with few iterations, as before the first element of an array."""
    return any(end <= SHORT for end in _literal_ends(loop.stop))


def _literal_ends(e: Expr) -> Iterator[int]:
    if isinstance(e, Number):
        yield int(e.value)
    elif isinstance(e, Call) and e.function == "minimum":
        for part in e.parts:
            yield from _literal_ends(part)


def _remainders(block: Block, counter: Counter) -> Iterator[tuple[Expr, Expr]]:
    """The period and the offset of each test whether the remainder of the counter plus an offset is 0."""
    for test in tests_of(block):
        match test:
            case Binary(op="==", left=Binary(op="%", left=dividend, right=period), right=zero) if is_number(zero, 0):
                offset = counter.offset(dividend)
                if offset is not None and counter.is_fixed(period):
                    yield period, folded(offset)


class _AtRemainder(Substitution):
    """The body of a loop where the counter is `at`. `decide` gives divisions of the counter plus an offset, and tests
    of its remainder, where they are known."""

    def __init__(self, counter: Counter, at: Expr, decide: Callable[[Binary], Expr | None]) -> None:
        values = {name: plus(at, offset) for name, offset in counter.sums.items()}
        super().__init__({counter.name: at, **values}, {}, lambda name: name)
        self._decide = decide

    def _replacement(self, e: Expr) -> Expr | None:
        if type(e) is Binary and e.op == "and":
            sides = [self.expression(side) for side in (e.left, e.right)]
            if any(isinstance(side, Number) and side.value is False for side in sides):
                return Number(False)
            return all_of([side for side in sides if not isinstance(side, Number)] or sides[:1])
        if type(e) is Binary and e.op in ("==", "%", "//"):
            found = self._decide(e)
            if found is not None:
                return found
        return super()._replacement(e)


def _written_out(loop: For, counter: Counter, period: int, fresh: Callable[[str], str]) -> Block:
    start, stop = loop.start or ZERO, loop.stop
    number = Name(fresh("period"), "int64")
    body: Block = []
    for place in range(period):

        def decide(e: Binary, place: int = place) -> Expr | None:
            offset = counter.offset(e.left) if is_number(e.right, period) and e.op != "==" else None
            offset = offset and folded(offset)
            if not isinstance(offset, Number):
                return None
            quotient, remainder = divmod(place + int(offset.value), period)
            return Number(remainder) if e.op == "%" else plus(number, Number(quotient))

        body += _AtRemainder(counter, plus(times(number, Number(period)), Number(place)), decide).block(loop.body)
    length = Number(period)
    first = (start + (period - 1)) // length
    last = call("maximum", stop // length, first)
    return [
        _again(loop, counter, start, call("minimum", first * length, stop)),
        *split_loops([For(number, first, last, 1, body)]),
        _again(loop, counter, last * length, stop),
    ]


def _again(loop: For, counter: Counter, start: Expr, stop: Expr) -> For:
    """The same between other ends."""
    body = _AtRemainder(counter, loop.variable, lambda e: None).block(loop.body)
    return replace(loop, start=start, stop=stop, body=body)


def _one_by_one(loop: For, counter: Counter, period: Expr, offset: Expr, fresh: Callable[[str], str]) -> Block:
    start, stop = loop.start or ZERO, loop.stop
    first, number, at = [Name(fresh(name), "int64") for name in ("first", "period", "at")]

    def is_asked(e: Expr) -> bool:
        if not isinstance(e, Binary) or e.op != "%" or e.right.text != period.text:
            return False
        found = counter.offset(e.left)
        return found is not None and folded(found).text == offset.text

    def without(e: Binary) -> Expr | None:
        return Number(False) if e.op == "==" and is_number(e.right, 0) and is_asked(e.left) else None

    def with_0(e: Binary) -> Expr | None:
        return ZERO if is_asked(e) else None

    others = _AtRemainder(counter, loop.variable, without).block(loop.body)
    found = minus((plus(start, offset) + period - 1) // period * period, offset)
    ends = [call("minimum", first, stop), call("minimum", at + period, stop)]
    turn: Block = [
        Assign((at,), (first + number * period,)),
        *_AtRemainder(counter, at, with_0).block(loop.body),
        replace(loop, start=at + 1, stop=ends[1], body=others),
    ]
    return [
        Assign((first,), (found,)),
        replace(loop, start=start, stop=ends[0], body=others),
        For(number, None, (stop - first + period - 1) // period, 1, turn),
    ]

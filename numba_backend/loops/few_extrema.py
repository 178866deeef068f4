"""Extrema of a few numbers, as numbers and not as keys.

    acc0 = maximum_key(c0)                                   acc0 = c0
    acc0 = maximum(acc0, maximum_key(a))           ->        acc0 = maximum(acc0, a)
    acc0 = maximum(acc0, maximum_key(b))                     acc0 = maximum(acc0, b)
    found0 = from_key(acc0)                                  found0 = acc0

An extremum of many numbers is one of integers, their keys, as each number then waits for one instruction of the one
before it (emit/reduce.py). In a loop over a small state there are two or three numbers, and the next iteration waits
for the ways from a register of floats to one of integers and back, which take longer.
"""

from __future__ import annotations

import math

from ...hlo.support.records import dataclass
from .expressions import Call, Expr, Name, Number, call
from .rewrite import rewritten
from .statements import Assign, Block, For, Statement, expressions_of, inner_blocks, with_blocks, with_values

MOST = 4
"""Numbers that are compared at most."""
_OF = {"maximum_key": "maximum", "minimum_key": "minimum"}


@dataclass(slots=True)
class _Accumulator:
    """What is known of a variable that begins as a key."""

    key: str
    type: str
    depth: int
    """The blocks around the one in which it begins."""
    numbers: int = 0
    """How many are compared with it."""
    reads: int = 0
    is_key: bool = False
    """True if it is used in another way, or may be."""


def few_extrema(block: Block) -> Block:
    """The statements of a kernel, with such extrema of up to `MOST` numbers."""
    found: dict[str, _Accumulator] = {}
    _collect(block, (), found)
    few = {name: a for name, a in found.items() if not a.is_key and a.numbers <= MOST and a.reads}
    return [_as_numbers(statement, few) for statement in block] if few else block


def _collect(block: Block, counts: tuple[int, ...], found: dict[str, _Accumulator]) -> None:
    """Look at the accumulators of a block. `counts`: how often each block around it runs; 0: unknown."""
    for statement in block:
        match statement:
            case Assign(targets=(target,), values=(Call(function=key, arguments=(start,)),)) if key in _OF:
                again = target.name in found
                found[target.name] = _Accumulator(key, start.type, len(counts), is_key=again)
                _uses(start, found)
                continue
        if (update := _update(statement, found)) is not None:
            name, number = update
            found[name].numbers += math.prod(counts[found[name].depth :]) or MOST + 1
            _uses(number, found)
            continue
        for e in expressions_of(statement):
            _uses(e, found)
        if isinstance(statement, Assign):
            for target in statement.targets:
                if target.name in found:
                    found[target.name].is_key = True
        for inner in inner_blocks(statement):
            _collect(inner, (*counts, _count(statement)), found)


def _update(statement: Statement, found: dict[str, _Accumulator]) -> tuple[str, Expr] | None:
    """(acc, number) of ``acc = maximum(acc, maximum_key(number))``."""
    match statement:
        case Assign(
            targets=(target,),
            values=(Call(function=function, arguments=(Name(name=name), Call(function=key, arguments=(number,)))),),
        ) if name == target.name and name in found and found[name].key == key and function == _OF[key]:
            return name, number
    return None


def _count(statement: Statement) -> int:
    """How often the blocks inside of a statement run; 0: unknown."""
    match statement:
        case For(start=None | Number() as start, stop=Number(value=stop), step=1):
            return max(int(stop) - (0 if start is None else int(start.value)), 0)
    return 0


def _uses(e: Expr, found: dict[str, _Accumulator]) -> None:
    match e:
        case Call(function="from_key", arguments=(Name(name=name),)) if name in found:
            found[name].reads += 1
        case Name(name=name) if name in found:
            found[name].is_key = True
        case _:
            for part in e.parts:
                _uses(part, found)


def _as_numbers(statement: Statement, few: dict[str, _Accumulator]) -> Statement:
    def number(name: str) -> Name:
        return Name(name, few[name].type)

    def changed(e: Expr) -> Expr | None:
        match e:
            case Call(function="from_key", arguments=(Name(name=name),)) if name in few:
                return number(name)
        return None

    statement = with_blocks(statement, lambda block: [_as_numbers(inner, few) for inner in block])
    if isinstance(statement, Assign) and len(statement.targets) == 1 and statement.targets[0].name in few:
        target = number(statement.targets[0].name)
        value = statement.values[0]
        assert isinstance(value, Call)
        if (update := _update(statement, few)) is not None:
            return Assign((target,), (call(value.function, target, rewritten(update[1], changed)),))
        return Assign((target,), (rewritten(value.arguments[0], changed),))
    return with_values(statement, lambda e: rewritten(e, changed))

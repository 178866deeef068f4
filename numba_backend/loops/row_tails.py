"""A transform: compute the functions of the results of rows for a block of rows.

    for i in range(lo, hi):                     for start in range(lo, hi, 256):
        acc0 = 0.0                                  stop = minimum(start + 256, hi)
        for j in range(n0):                         for i in range(start, stop):
            acc0 = acc0 + x0[i * n0 + j]   ->           acc0 = 0.0
        out[i] = log(acc0)                              for j in range(n0):
                                                            acc0 = acc0 + x0[i * n0 + j]
                                                        held0[i - start] = acc0
                                                    for i in range(start, stop):
                                                        acc0 = held0[i - start]
                                                        out[i] = log(acc0)

A long function of one number takes as long as that of a vector, which is as long as a row of 100 elements. Neighbouring
rows are a vector. The results are the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .expressions import Call, Expr, Name, minimum
from .forward import assigned
from .long_chains import BLOCK, HELD, MOST_HELD, fresh_name, loop_over_all
from .statements import (
    Assign,
    Block,
    Comment,
    For,
    LocalArray,
    LoopProgram,
    Statement,
    Store,
    expressions_of,
    names_of,
    walk,
)
from .straight_lines import loads_of
from .typing import pointer_to
from .vectorized_calls import LONG


def with_row_tails(program: LoopProgram) -> LoopProgram:
    """The program, in two loops if it is one loop over rows with a long function after the last inner loop."""
    found = loop_over_all(program)
    if found is None:
        return program
    before, loop = found
    taken = {*program.parameters, *names_of(program.body), *assigned(program.body)}
    made = _split(loop, lambda name: fresh_name(name, taken))
    return program if made is None else replace(program, body=[*before, *made])


def _split(loop: For, fresh: Callable[[str], str]) -> Block | None:
    body: Block = [s for s in loop.body if not isinstance(s, Comment)]
    first = len(body)
    while first and isinstance(body[first - 1], (Assign, Store)):
        first -= 1
    ended = first
    for s in body[ended:]:  # a float is kept, in place of the key that it is made of
        if isinstance(s, Store) or _loads(s) or _has_long_call(s):
            break
        first += 1
    head, tail = body[:first], body[first:]
    if not ended or not any(map(_has_long_call, tail)) or not _are_apart(head, tail):
        return None
    types = {t.name: t.type for s in walk(head) if isinstance(s, Assign) for t in s.targets}
    held = [name for name in dict.fromkeys(names_of(tail)) if name in types]
    if {*assigned(tail)} & {*types, *names_of(head)}:
        return None
    if not held or len(held) > MOST_HELD or any(types[name] not in HELD for name in held):
        return None
    start, stop = Name(fresh("start")), Name(fresh("stop"))
    place = loop.variable - start
    arrays = {name: Name(fresh("held"), pointer_to(types[name])) for name in held}
    kept = [Store(array, place, Name(name, types[name])) for name, array in arrays.items()]
    read = [Assign((Name(name, types[name]),), (array[place],)) for name, array in arrays.items()]
    return [
        *[LocalArray(array, BLOCK, array.type[:-1]) for array in arrays.values()],
        For(
            start, loop.start, loop.stop, BLOCK,
            [
                Assign((stop,), (minimum(start + BLOCK, loop.stop),)),
                For(loop.variable, start, stop, 1, [*head, *kept], loop.kind),
                For(loop.variable, start, stop, 1, [*read, *tail], loop.kind),
            ],
        ),
    ]  # fmt: skip


def _has_long_call(statement: Statement) -> bool:
    return any(map(_is_long, expressions_of(statement)))


def _loads(statement: Statement) -> set[str]:
    return {load.pointer.name for load in loads_of(statement)}


def _is_long(e: Expr) -> bool:
    return (isinstance(e, Call) and e.function in LONG and e.type in HELD) or any(map(_is_long, e.parts))


def _are_apart(head: Block, tail: Block) -> bool:
    """True if the tail of a row may come after the heads of later ones: neither uses memory that the other writes."""
    def stored(block: Block) -> set[str]:
        return {s.pointer.name for s in walk(block) if isinstance(s, Store)}

    def loaded(block: Block) -> set[str]:
        return {name for s in walk(block) for name in _loads(s)}

    own = stored(tail)
    return not own & (loaded(head) | stored(head)) and not loaded(tail) & (stored(head) | own)

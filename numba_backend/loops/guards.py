"""Test what guards a load before the load.

    v0 = s1                                                        v0 = s1
    start0 = int64(maximum(add(v0, int32(-1)), int32(0)))          if not (v0 > int32(0)):
    v1 = x[start0]                                                     break
    s2 = uint8((v0 > int32(0)) & (v1 > v2))            ->          start0 = int64(maximum(add(v0, int32(-1)), int32(0)))
    if not (s2 != 0):                                              v1 = x[start0]
        break                                                      s2 = uint8(v1 > v2)
                                                                   if not (s2 != 0):
                                                                       break

A search tests its index and an element at once, since HLO has no operation that leaves its second operand out, and the
index of the load is kept inside of the array. After a test of its own LLVM knows where the index is, and drops that.
"""

from __future__ import annotations

from .expressions import Binary, Call, Expr, Name, Number, Unary
from .forward import assigned
from .split import conditions
from .statements import Assign, Block, Break, Comment, If, Statement, names_of, walk
from .straight_lines import loads_of


def guards_first(block: Block, test: Expr) -> Block:
    """The statements before the body of a loop that ends when `test` does not hold; `test` is of a variable that only
    they assign."""
    leave = [*block, _leave(test)]
    match test:
        case Binary(op="!=", left=Name(name=flag), right=Number(value=0)):
            pass
        case _:
            return leave
    if flag in names_of(block) or list(assigned(block)).count(flag) != 1:
        return leave
    for at, statement in enumerate(block):
        match statement:
            case Assign(targets=(target,), values=(Call(function="uint8", arguments=(whole,)),)) if target.name == flag:
                return _in_turn(block, at, whole, test)
    return leave


def _in_turn(block: Block, at: int, whole: Expr, test: Expr) -> Block:
    """`at`: the place of the statement that assigns the conditions `whole` to the variable of the test."""
    early: dict[int, list[Expr]] = {}
    late: list[Expr] = []
    for condition in conditions(whole, ("&",)):
        place = _place(block, at, condition)
        if any(any(loads_of(s)) for s in walk(block[place:at])):
            early.setdefault(place, []).append(condition)
        else:
            late.append(condition)
    if not early or not late:
        return [*block, _leave(test)]
    result: Block = []
    for place, statement in enumerate(block):
        result += map(_leave, early.get(place, ()))
        if place == at:
            assert isinstance(statement, Assign)
            kept = late[0]
            for condition in late[1:]:
                kept = Binary("&", kept, condition)
            statement = Assign(statement.targets, (Call("uint8", (kept,)),))
        result.append(statement)
    return [*result, _leave(test)]


def _place(block: Block, at: int, condition: Expr) -> int:
    """The first place, up to `at`, where the condition can be computed; `at` for one that loads."""
    if condition.loads:
        return at
    names = set(condition.names)
    while at and names.isdisjoint(assigned([block[at - 1]])) and not isinstance(block[at - 1], Comment):
        at -= 1
    return at


def _leave(test: Expr) -> Statement:
    return If([(Unary("not", test), [Break()])])

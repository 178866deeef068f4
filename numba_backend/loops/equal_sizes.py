"""Give equal sizes in the indices of one array one name.

    v = y[i * n1 + j]                         v = y[i * n1 + j]
    start = minimum(k, n2 - 1)                start = minimum(k, n2 - 1)
    w = y[start * n3 + j]             ->      w = y[start * n1 + j]
    y[i * n4 + j] = v + w                     y[i * n1 + j] = v + w
    v = y[i * n5 + j]                         v = y[i * n1 + j]

Each kernel in a loop has its own sizes, which are arguments. LLVM does not know that they are equal. So it does not see
that an element is loaded which has just been stored, and computes an address several times. Only sizes with one
meaning are compared, those that rows are multiplied by, and those that indices are clamped to: they are equal at nearly
all other sizes of the program, too, and these have the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from .expressions import Call, Expr, Name
from .rewrite import with_names
from .statements import Assign, Block, For, If, Statement, Store, While, expressions_of, walk, with_blocks, with_values


def with_equal_sizes(block: Block, sizes: Mapping[str, int]) -> Block:
    """The statements with one name for such sizes. `sizes`: the numbers that arguments stand for."""
    same: dict[str, Expr] = {}
    for names in _names_by_meaning(block, sizes):
        kept: list[str] = []
        for name in names:
            if name in same:
                continue
            first = next((other for other in kept if sizes[other] == sizes[name]), None)
            if first is None:
                kept.append(name)
            else:
                same[name] = Name(first)
    return _renamed(block, same) if same else block


def _names_by_meaning(block: Block, sizes: Mapping[str, int]) -> Iterator[dict[str, None]]:
    """The sizes in the indices of each array, and those that its indices are clamped to, in the order of the text."""
    clamped: dict[str, Expr] = {}
    in_indices: dict[str, dict[str, None]] = {}
    in_limits: dict[str, dict[str, None]] = {}
    for statement in walk(block):
        indices = [(load.pointer.name, load.index) for e in expressions_of(statement) for load in e.loads]
        if isinstance(statement, Store):
            indices.append((statement.pointer.name, statement.index))
        for array, index in indices:
            in_indices.setdefault(array, {}).update(dict.fromkeys(_sizes_in(index, sizes)))
            for name in index.names:
                if name in clamped:
                    in_limits.setdefault(array, {}).update(dict.fromkeys(_sizes_in(clamped[name], sizes)))
        if isinstance(statement, Assign) and len(statement.targets) == 1:
            (target,), (value,) = statement.targets, statement.values
            if _is_clamped(value):
                clamped[target.name] = value
    yield from in_indices.values()
    yield from in_limits.values()


def _sizes_in(e: Expr, sizes: Mapping[str, int]) -> list[str]:
    """The int64 arguments in an expression."""
    if not any(name in sizes for name in e.names):
        return []
    return [e.name for e in e.walk() if isinstance(e, Name) and e.type == "int64" and e.name in sizes]


def _is_clamped(value: Expr) -> bool:
    while isinstance(value, Call) and value.function == "int64":
        (value,) = value.arguments
    return isinstance(value, Call) and value.function == "minimum"


def _renamed(block: Block, same: Mapping[str, Expr]) -> Block:
    def new(e: Expr) -> Expr:
        return with_names(e, same)

    def changed(statement: Statement) -> Statement:
        match with_blocks(with_values(statement, new), lambda inner: _renamed(inner, same)):
            case For(start=start, stop=stop) as loop:
                return replace(loop, start=None if start is None else new(start), stop=new(stop))
            case While(test=test) as loop:
                return replace(loop, test=new(test))
            case If(branches=branches) as choice:
                return replace(choice, branches=[(new(test), inner) for test, inner in branches])
            case other:
                return other

    return [changed(statement) for statement in block]

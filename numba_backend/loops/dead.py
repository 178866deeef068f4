"""Remove dead variables: only assignments to dead variables read them. Only the text gains; LLVM drops them."""

from __future__ import annotations

from .statements import Assign, Block, Comment, If, expressions_of, walk, with_blocks


def without_dead_variables(block: Block) -> Block:
    """The statements without assignments to dead variables, and without comments about nothing."""
    read_by: dict[str, set[str]] = {}
    pending: list[str] = []
    for statement in walk(block):
        names = {name for e in expressions_of(statement) for name in e.names}
        if isinstance(statement, Assign):
            for target in statement.targets:
                read_by.setdefault(target.name, set()).update(names)
        else:
            pending += names
    live: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in live:
            live.add(name)
            pending += read_by.get(name, ())
    return _kept(block, live)


def _kept(block: Block, live: set[str]) -> Block:
    result: Block = []
    for statement in block:
        kept = with_blocks(statement, lambda inner: _kept(inner, live))
        if isinstance(kept, If) and not kept.otherwise:
            kept = If(kept.branches)
        if isinstance(kept, Assign) and not any(target.name in live for target in kept.targets):
            continue
        if result and isinstance(result[-1], Comment) and isinstance(kept, Comment):
            result.pop()
        result.append(kept)
    while result and isinstance(result[-1], Comment):
        result.pop()
    return result

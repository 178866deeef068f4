"""Loops that run once become their bodies."""

from __future__ import annotations

from .expressions import ZERO, Number
from .rewrite import Substitution
from .statements import Block, For, If, While


def without_single_loops(block: Block) -> Block:
    """The block, without loops that run once."""
    result: Block = []
    for statement in block:
        if isinstance(statement, For):
            statement.body = without_single_loops(statement.body)
            if _is_once(statement):
                start = statement.start or ZERO
                result += Substitution({statement.variable.name: start}, {}, lambda name: name).block(statement.body)
                continue
        elif isinstance(statement, While):
            statement.body = without_single_loops(statement.body)
        elif isinstance(statement, If):
            statement.branches = [(test, without_single_loops(inner)) for test, inner in statement.branches]
            if statement.otherwise is not None:
                statement.otherwise = without_single_loops(statement.otherwise)
        result.append(statement)
    return result


def _is_once(loop: For) -> bool:
    start = loop.start or ZERO
    both = isinstance(start, Number) and isinstance(loop.stop, Number) and loop.step == 1
    return both and loop.stop.value - start.value == 1  # type: ignore[attr-defined]

"""Loops that run once become their bodies."""

from __future__ import annotations

from .expressions import ZERO, Number
from .rewrite import Substitution
from .statements import Block, For, with_blocks


def without_single_loops(block: Block) -> Block:
    """The block, without loops that run once."""
    result: Block = []
    for statement in block:
        inner = with_blocks(statement, without_single_loops)
        if isinstance(inner, For) and _is_once(inner):
            start = inner.start or ZERO
            result += Substitution({inner.variable.name: start}, {}, lambda name: name).block(inner.body)
        else:
            result.append(inner)
    return result


def _is_once(loop: For) -> bool:
    start = loop.start or ZERO
    both = isinstance(start, Number) and isinstance(loop.stop, Number) and loop.step == 1
    return both and loop.stop.value - start.value == 1  # type: ignore[attr-defined]

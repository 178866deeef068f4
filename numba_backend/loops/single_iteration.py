"""Replace loops that run once by their bodies, and leave out loops that never run."""

from __future__ import annotations

from .expressions import ZERO, Number
from .rewrite import Substitution
from .statements import Block, For, with_blocks


def without_single_iterations(block: Block) -> Block:
    """The block, without loops that run once or never."""
    result: Block = []
    for statement in block:
        inner = with_blocks(statement, without_single_iterations)
        count = _trip_count(inner) if isinstance(inner, For) else None
        if count == 0:
            continue
        if isinstance(inner, For) and count == 1:
            start = inner.start or ZERO
            result += Substitution({inner.variable.name: start}, {}, lambda name: name).block(inner.body)
        else:
            result.append(inner)
    return result


def _trip_count(loop: For) -> int | None:
    """How often a loop runs, if that is in its text."""
    start = loop.start or ZERO
    if not isinstance(start, Number) or not isinstance(loop.stop, Number) or loop.step != 1:
        return None
    return max(int(loop.stop.value) - int(start.value), 0)

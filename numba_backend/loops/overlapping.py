"""Write short loops of unknown length as blocks that overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from .expressions import ZERO, Expr, Number
from .writer import Writer


def each_of(
    writer: Writer, count: Expr, act: Callable[[Expr], None], sizes: tuple[int, ...] = (16, 4), most: float = math.inf
) -> None:
    """Write code that calls `act` for j in range(count), perhaps twice for some j: in blocks of some `sizes`. The last
    block overlaps the one before it, so that no element is left over for a loop that takes them one by one. `most`: the
    largest count. ::

    if count >= 64:
        for j in range(count):
            act(j)
    elif count >= 16:
        act(0) ... act(15)
        if count > 32:
            act(16) ... act(31)
        if count > 48:
            act(32) ... act(47)
        act(count - 16) ... act(count - 1)
    elif count >= 4:
        ...

    LLVM makes a call of memcpy or memset from a loop with an unknown end, and such a call takes longer than a short
    row.
    """

    def block(start: Expr, size: int) -> None:
        with nullcontext(ZERO) if size == 1 else writer.neighbours("lane", Number(size), always=True) as lane:
            act(start + lane)

    if isinstance(count, Number):
        block(ZERO, int(count.value))
        return
    branches = 0

    def branch(size: int) -> AbstractContextManager[None]:
        nonlocal branches
        branches += 1
        return (writer.elif_ if branches > 1 else writer.if_)(count >= size)

    if most >= 4 * sizes[0]:
        with branch(4 * sizes[0]), writer.loop("lane", count) as lane:
            act(lane)
    for size in sizes:
        if most < size:
            continue
        with branch(size):
            block(ZERO, size)
            for start in (size, 2 * size):
                if most > start + size:
                    with writer.if_(count > start + size):
                        block(Number(start), size)
            block(writer.assign("rest", count - size), size)
    with writer.else_() if branches else nullcontext():
        for k in range(3):
            if most > k:
                with writer.if_(count > k):
                    act(Number(k))

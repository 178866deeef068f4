"""Python's garbage collector while a program is traced and compiled: it looks for garbage seldom.

Both make hundreds of thousands of small objects. Those that are not kept go when their last reference does. The
collector would look through the young ones each time that 700 more are there, and now and then through everything that
LLVM, Numba and the user's program have made: up to a fifth of a first compilation, or a tenth of a second in the midst
of a short one. Numba leaves cycles behind, so the collector is not switched off.

Those of so many objects that are still there would have been looked through several times, and would be old. They are
after this, too: within the block each collection includes the middle generation, and so does the one at the end if the
collector would have come to the middle generation in the meantime. Otherwise the modules that a first compilation
imports, and all that LLVM keeps, were looked through again in the midst of the second one: a third of its time.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..system import at_fork
from .forking import Order, fork_lock

SELDOM = 100_000
"""As many more objects, some ten megabytes, and the collector looks through the young ones."""
ALWAYS = -1
"""The threshold of the middle generation within a block: more collections than that have always been."""
_HAS_MIDDLE = sys.version_info < (3, 14)
"""The collector of later versions goes through the old objects in small steps, and has no middle generation."""

_lock = fork_lock(Order.LEAF)
_inside: set[object] = set()
"""The blocks that have not ended."""
_before: list[tuple[int, int, int]] = []
"""The thresholds to go back to, if this file has changed them."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Within the block the collector starts after `SELDOM` objects. Blocks may be in one another and in several
    threads: the last one that ends restores the old state.

    A collector that is switched off, or that starts later, stays as it is. Thresholds that other code sets meanwhile
    stay, too.
    """
    block = object()
    try:
        _enter(block)
        yield
    finally:
        _leave(block)


def _enter(block: object) -> None:
    with _lock:
        _inside.add(block)
        found = gc.get_threshold()
        if 0 < found[0] < SELDOM:
            _before[:] = [found]
            gc.set_threshold(SELDOM, ALWAYS if _HAS_MIDDLE else found[1], found[2])


def _leave(block: object | None) -> None:
    """An interrupt may come between any two lines, here too: then the next block that ends restores them."""
    with _lock:
        _inside.discard(block)
        is_last = not _inside and bool(_before) and gc.get_threshold()[0] == SELDOM
        first, middle, _ = _before[0] if is_last else (0, 0, 0)
    if is_last and _HAS_MIDDLE and gc.isenabled() and gc.get_count()[0] > first * max(middle, 1):
        gc.collect(1)  # without the lock, since finalizers are anyone's code
    with _lock:
        if not _inside and _before:
            if gc.get_threshold()[0] == SELDOM:
                gc.set_threshold(*_before[0])
            _before.clear()


def _alone() -> None:
    """After a fork the threads that were inside are not there."""
    _inside.clear()
    _leave(None)


at_fork(after_in_child=_alone)

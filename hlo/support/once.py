"""Objects that a process makes once, when they are first needed, in whichever thread.

`functools.cache` lets two threads compute a value at the same time; each gets its own, and the later one is kept. That
is enough for values. If native code keeps the address of an object, the object must be the one that is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def once(make: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
    """A function that returns the same object for the same arguments, for the life of the process.

    Two threads that call it first at the same time may both call `make`, and get the result of one of them.
    """
    made: dict[tuple[*Ts], T] = {}

    @functools.wraps(make)
    def get(*arguments: *Ts) -> T:
        return made[arguments] if arguments in made else made.setdefault(arguments, make(*arguments))

    return get

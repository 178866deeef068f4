"""The interface between jit's dispatch and machine code of a backend that makes whole calls.

A runner takes the arrays of a call and returns its result. Where it is machine code, its `__self__` is a
`NativeRunner`. Then jit needs no look-up of its own: `CallSites` compares the arguments of a call with those of earlier
calls. The machine code reads objects of the tracer, which says what slots they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class ArraySlots(NamedTuple):
    """The class of arrays, and the names of its slots for the type, the buffer and the place, which is None for results
    and for most arguments."""

    kind: type[Any]
    aval: str
    buffer: str
    place: str


class ThreadSettings(NamedTuple):
    """Where the context of a call is: in the slot `context` of an object of the class `settings`, which is the
    attribute `running` of `thread`. The attribute is None while no program may run at once."""

    thread: object
    running: str
    settings: type[Any]
    context: str


class SiteParameter(NamedTuple):
    """An argument of a call: an array of the type `aval` that has no place. If there is a dtype, also a NumPy array
    with that very dtype and these dimensions. If there is a number, also a number of Python of this type; it has
    `number_bytes` in memory. An integer or a float that these cannot hold is unusual."""

    aval: object
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    number: type[Any] | None
    number_bytes: int


class CallSites(ABC):
    """The calls of one function that need no look-up."""

    call: Callable[[tuple[Any, ...]], Any]
    """The result of a call with these arguments; NotImplemented if they are those of no known call, or something is
    unusual. Then nothing has been done."""


class NativeRunner(ABC):
    """The `__self__` of a runner in machine code."""

    @abstractmethod
    def add_site(
        self, sites: CallSites | None, where: ThreadSettings, context: object, parameters: Sequence[SiteParameter]
    ) -> CallSites:
        """`sites`, or new ones if there are none, with one more call: from now on arguments like `parameters` run this
        runner in this context. Above a certain number of calls nothing changes."""

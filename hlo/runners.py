"""The interface between jit's dispatch and machine code of a backend that makes whole calls.

A runner takes the arrays of a call and returns its result. Where it is machine code, its `__self__` is a
`NativeRunner`. Then jit needs no look-up of its own: `CallSites` compares the arguments of a call with those of earlier
calls. The machine code reads objects of the tracer, which says what slots they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .support.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ArraySlots:
    """The class of arrays, and the names of its slots for the type, the buffer and the place, which is None for results
    and for most arguments.

    An array that a call takes the memory of has afterwards no buffer, and `deleted` in its slot `absence`. If that slot
    or one of `forms` holds something before, or `before_taking` is not empty, the call is unusual.
    """

    kind: type[Any]
    aval: str
    buffer: str
    place: str
    absence: str
    deleted: object
    forms: tuple[str, str, str, str]
    before_taking: list[Any]


class ThreadSettings(NamedTuple):
    """Where the context of a call is: in the slot `context` of an object of the class `settings`, which is the
    attribute `running` of `thread`. The attribute is None while no program may run at once. `thread` is CPython's own
    `threading.local`: its dictionary is the same for the life of a thread."""

    thread: object
    running: str
    settings: type[Any]
    context: str


class SiteContainer(NamedTuple):
    """A container in the arguments of a call. The objects of a call are counted: 0 is the tuple of its positional
    arguments, 1 the dictionary of the others; after them come the parts of each container in turn."""

    place: int
    """Its number among the objects."""
    kind: type[Any]
    """A tuple, a list, a dictionary, a named tuple or the type of None, which has no parts."""
    parts: int
    """How many parts it has."""
    keys: tuple[Any, ...]
    """Of a dictionary, in the order in which it has them."""


class SiteParameter(NamedTuple):
    """An argument of a program, the object number `place` of a call: an array of the type `aval` that has no place. If
    there is a dtype, also a NumPy array with that very dtype and these dimensions. If there is a scalar, also one of
    NumPy's scalars of this type. If there is a number, also a number of Python of this type; it has `number_bytes` in
    memory. An integer or a float that these cannot hold is unusual."""

    place: int
    aval: object
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    scalar: type[np.generic] | None
    number: type[Any] | None
    number_bytes: int


class SitesBlock(bytes):
    """Words in memory that stay where they are: for machine code, the sites of a function."""

    kept: Any
    """References to the objects that must live as long."""


NO_SITES = SitesBlock(64)
"""The block of a function without sites. The first word is the backend's."""


class CallSites(ABC):
    """The calls of one function that need no look-up."""

    block: SitesBlock = NO_SITES
    """For the slot of a function; see `CallableSlots`."""
    call: Callable[[tuple[Any, ...], dict[str, Any]], Any]
    """The result of a call with these arguments, by position and by name; NotImplemented if they are those of no known
    call, or something is unusual. Then nothing has been done."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all sites: functions may still have the block."""


class CallableSlots(NamedTuple):
    """The class of jitted functions. Each has a `SitesBlock` in its first slot, `sites`, so that machine code can take
    the place of `__call__`: there it asks the sites, and `__call__` where they do not know the call."""

    kind: type[Any]
    sites: str
    raises: Callable[..., Any]
    """A function that raises an error of such a call: it takes the function, the error and the arguments."""


class NativeRunner(ABC):
    """The `__self__` of a runner in machine code."""

    @abstractmethod
    def take_calls(self, functions: CallableSlots) -> None:
        """From now on machine code calls these functions, if this Python lets it."""

    @abstractmethod
    def take_waits(self, function: object) -> None:
        """From now on machine code calls this function, the only object of its class, whose first slot `_block` is a
        `SitesBlock` of one word. It returns its only argument, if that is an array whose elements are in memory of this
        process, and else asks `__call__`."""

    @abstractmethod
    def add_site(
        self, sites: CallSites | None, where: ThreadSettings, context: object,
        containers: Sequence[SiteContainer], parameters: Sequence[SiteParameter], constants: Mapping[int, object],
    ) -> CallSites:  # fmt: skip
        """`sites`, or new ones if there are none, with one more call: from now on arguments in such containers run this
        runner in this context, if they are like `parameters`, and the objects with the numbers of `constants` are
        these. Above a certain number of calls nothing changes."""

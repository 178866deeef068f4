"""PendingArray: an array with a deferred value, and the record of the operations that will compute it.

Within a `jit_scope`, an operation on arrays is not carried out. It becomes an entry of the thread's `Batch`, and its
result is a PendingArray, which knows its number there. Code that reads only types sees an Array like any other. Reading
its elements settles the batch (`clusters.py`), and the array becomes an ordinary one: its class changes, as a deleted
array's does.

A batch keeps the operands from outside, and refers to results weakly: an array without a reference when the batch is
settled is no result. A batch grows at its end only, so another thread may take the present entries and settle them for
itself: everything here is without effects, and computing a value twice does no harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, Self

from ...hlo.backend import DeviceBuffer
from ...hlo.forking import Order, fork_lock
from ..arrays.array import Array, NDArray, slot_is_set
from ..aval import ShapedArray
from .steps import Step

_lock = fork_lock(Order.LEAF)
"""Held while an array changes its class."""
_HANDLE: Any = Array.__dict__["_pending"]
_ASKED = frozenset({"_buffer", "_numpy", "_view"})


class Batch(ABC):
    """Deferred operations. `Recorder` (`deferral.py`) makes the one class of it."""

    __slots__ = ("constants", "entries", "known")

    entries: list[tuple[Step, Any]]
    """The values by number: the step that describes each, and an Array for a value from outside, a weak reference to
    the Handle for a result, or None."""
    known: dict[int, tuple[int, Array]]
    """By the id of an array from outside: its number, and the array, so that the id stays taken."""
    constants: dict[Any, int]
    """The numbers of constants, by type and bytes."""

    def __init__(self, root: Step) -> None:
        self.entries = [(root, None)]
        self.known = {}
        self.constants = {}

    @abstractmethod
    def settle_for(self, handle: Handle) -> None:
        """Fill the handle; others of the batch too, if the batch belongs to this thread."""


class Handle:
    """A deferred result. All arrays that are this value, strongly or weakly typed, hold it."""

    __slots__ = ("__weakref__", "batch", "buffer", "number", "view")

    def __init__(self, batch: Batch, number: int) -> None:
        self.batch: Batch | None = batch
        """None once the value is there."""
        self.number = number
        self.buffer: DeviceBuffer | None = None
        self.view: NDArray | None = None

    def fill(self, buffer: DeviceBuffer | None, view: NDArray | None) -> None:
        """The value, in one form or both."""
        self.buffer, self.view = buffer, view
        self.batch = None


class PendingArray(Array):
    """An Array without elements, so far."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED:
            self.filled()
            return getattr(self, name)
        return super().__getattr__(name)

    def filled(self) -> Array:
        """Itself, an ordinary Array from now on."""
        try:
            handle = self._pending
        except AttributeError:  # another thread has just done it
            return self
        batch = handle.batch
        if batch is not None:
            batch.settle_for(handle)
        with _lock:
            if self.__class__ is PendingArray:  # else another thread has been here, and has perhaps given it away since
                if handle.buffer is not None:
                    self._buffer = handle.buffer
                if handle.view is not None:
                    self._view = handle.view
                self.__class__ = Array  # type: ignore[assignment]
                del self._pending
        return self

    def with_aval(self, aval: ShapedArray) -> Array:
        try:
            handle = self._pending
        except AttributeError:
            return super().with_aval(aval)
        other = PendingArray.__new__(PendingArray)
        other.aval = aval
        other._pending = handle
        if slot_is_set(self, "_placed"):
            other._placed = self._placed
        return other

    def block_until_ready(self) -> Self:
        self.filled()
        return self

    def is_ready(self) -> bool:
        """True: reading waits for the value, since it would never be there otherwise."""
        return self.filled().is_ready()

    def copy_to_host_async(self) -> None:
        self.filled().copy_to_host_async()

    @property
    def is_settled(self) -> bool:
        """Whether the value is there already. Does not ask for it."""
        return not slot_is_set(self, "_pending") or self._pending.batch is None

    def delete(self) -> None:
        with _lock:
            super().delete()
            with suppress(AttributeError):
                _HANDLE.__delete__(self)


def pending(aval: ShapedArray, handle: Handle) -> PendingArray:
    """An array of type `aval` that will have the value of `handle`."""
    self = PendingArray.__new__(PendingArray)
    self.aval = aval
    self._pending = handle
    return self

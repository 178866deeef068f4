"""Arrays with deferred values, and the record of the operations that will compute them.

Within a `jit_scope`, an operation on arrays is not carried out. It becomes an entry of the thread's `Batch`, and its
result is an Array without elements: its `Handle` knows the number of the entry. Code that reads only types sees no
difference. Reading the elements settles the batch (`clusters.py`), and the array gets them.

A batch keeps the operands from outside, and refers to results weakly: an array without a reference when the batch is
settled is no result. A batch grows at its end only, so another thread may take the present entries and settle them for
itself: everything here is without effects, and computing a value twice does no harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...hlo.backend import DeviceBuffer
from ..arrays.array import Absence, Array, NDArray
from ..aval import ShapedArray
from .steps import Step


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


class Handle(Absence):
    """A deferred result: the absence of its elements. All arrays that are this value, strongly or weakly typed, have
    it."""

    __slots__ = ("__weakref__", "batch", "buffer", "number", "view")

    def __init__(self, batch: Batch, number: int) -> None:
        self.batch: Batch | None = batch
        """None once the value is there."""
        self.number: int = number
        self.buffer: DeviceBuffer | None = None
        self.view: NDArray | None = None

    def fill(self, buffer: DeviceBuffer | None, view: NDArray | None) -> None:
        """The value, in one form or both."""
        self.buffer, self.view = buffer, view
        self.batch = None

    def end(self, array: Array) -> None:
        batch = self.batch
        if batch is not None:
            batch.settle_for(self)
        array._receive(self, self.buffer, self.view)

    def shared(self, array: Array) -> Absence:
        return self


def pending(aval: ShapedArray, handle: Handle) -> Array:
    """An array of type `aval` that will have the value of `handle`."""
    self = Array.__new__(Array)
    self.aval = aval
    self._placed = None
    self._absence = handle
    return self

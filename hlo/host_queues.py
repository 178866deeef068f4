"""Queues between programs and the process that runs them: infeed, outfeed, and channels of send and recv.

One infeed, one outfeed, and one queue a channel, for the whole process; every backend uses them. A program that finds
a queue empty waits, up to `timeout` seconds. Source: XLA's transfer manager (TransferLiteralToInfeed,
TransferLiteralFromOutfeed).
"""

from __future__ import annotations

import queue
import threading
from typing import Any, TypeAlias

import numpy as np

from .element_type import element_type_of
from .errors import ExecutionError
from .shape import Shape

NDArray: TypeAlias = np.ndarray[Any, Any]
Tree: TypeAlias = "NDArray | tuple[Tree, ...]"

DEFAULT_TIMEOUT = 60.0


class HostQueues:
    """The queues of a process. Safe to use from several threads."""

    def __init__(self) -> None:
        self.timeout = DEFAULT_TIMEOUT
        """Seconds that `take` waits for something to arrive."""
        self._queues: dict[str, queue.SimpleQueue[tuple[Shape, Tree]]] = {}
        self._lock = threading.Lock()

    def put(self, name: str, value: Any) -> None:
        """Add an array or a (nested) tuple of arrays to a queue; the arrays are copied."""
        self._queue(name).put((_shape_of(value), _copied(value)))

    def take(self, name: str, shape: Shape) -> Any:
        """The queue's first value. ExecutionError if none comes in time, or one of another type."""
        try:
            found, value = self._queue(name).get(timeout=self.timeout)
        except queue.Empty:
            why = f"nothing arrived in the queue of {name} for {self.timeout:g} s; a value of type {shape} was expected"
            raise ExecutionError(why) from None
        if not found.compatible(shape):
            raise ExecutionError(f"the next value in the queue of {name} is {found}, not {shape}")
        return value

    def clear(self) -> None:
        """Forget all that is in the queues."""
        with self._lock:
            self._queues.clear()

    def _queue(self, name: str) -> queue.SimpleQueue[tuple[Shape, Tree]]:
        with self._lock:
            return self._queues.setdefault(name, queue.SimpleQueue())


HOST_QUEUES = HostQueues()
"""Those of this process."""

INFEED, OUTFEED = "infeed", "outfeed"


def channel(number: int | None) -> str:
    """The name of the queue between the send and the recv of a channel."""
    return f"channel {0 if number is None else number}"


def transfer_to_infeed(value: Any) -> None:
    """Put an array, or a (nested) tuple of arrays, where the next `infeed` of a program takes it from."""
    HOST_QUEUES.put(INFEED, value)


def transfer_from_outfeed(shape: Shape) -> Any:
    """What an `outfeed` of a program put out, in order; waits for it. ExecutionError if it is not of type `shape`."""
    return HOST_QUEUES.take(OUTFEED, shape)


def _shape_of(value: Any) -> Shape:
    if isinstance(value, tuple):
        return Shape.tuple([_shape_of(v) for v in value])
    array = np.asarray(value)
    return Shape.array(element_type_of(array.dtype), array.shape)


def _copied(value: Any) -> Tree:
    return tuple([_copied(v) for v in value]) if isinstance(value, tuple) else np.array(value, order="C")

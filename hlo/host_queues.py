"""Queues between programs and the process that runs them: infeed, outfeed, and channels of send and recv.

The whole process has one infeed, one outfeed, and one queue for each channel; every backend uses them. A program that
finds a queue empty waits up to `timeout` seconds. Source: XLA's transfer manager (TransferLiteralToInfeed,
TransferLiteralFromOutfeed).
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from .element_type import element_type_of
from .errors import EmptyQueueError, ExecutionError
from .instruction import HloInstruction
from .opcode import Opcode
from .shape import Shape
from .support.forking import Order, fork_lock

NDArray: TypeAlias = np.ndarray[Any, Any]
Tree: TypeAlias = "NDArray | tuple[Tree, ...]"

DEFAULT_TIMEOUT = 60.0


class HostQueues:
    """The queues of a process. Safe to use from several threads."""

    def __init__(self) -> None:
        self.timeout = DEFAULT_TIMEOUT
        """Seconds that `take` waits for something to arrive."""
        self._queues: dict[str, queue.SimpleQueue[tuple[Shape, Tree]]] = {}
        self._closed: Set[str] = frozenset()
        self._lock = fork_lock(Order.LEAF)

    def put(self, name: str, value: Any) -> None:
        """Add an array or a (nested) tuple of arrays to a queue; the arrays are copied."""
        self._queue(name).put((_shape_of(value), _copied(value)))

    @contextmanager
    def closed(self, names: Iterable[str]) -> Iterator[None]:
        """Within the block no program waits for these queues: data that is not there already will not come."""
        before = self._closed
        self._closed = before | set(names)
        try:
            yield
        finally:
            self._closed = before

    def take(self, name: str, shape: Shape, instruction: str = "") -> Any:
        """Remove and return the first value, for an instruction. EmptyQueueError if none arrives in time,
        ExecutionError if it has another type."""
        closed = name in self._closed
        try:
            found, value = self._queue(name).get(timeout=0.0 if closed else self.timeout)
        except queue.Empty:
            arrived = "is in the queue of" if closed else "arrived in the queue of"
            while_ = ", and nothing will come" if closed else f" for {self.timeout:g} s"
            why = f"nothing {arrived} {name}{while_}; a value of type {shape} was expected"
            raise EmptyQueueError(why, name, instruction) from None
        if not found.compatible(shape):
            raise ExecutionError(f"the next value in the queue of {name} is {found}, not {shape}")
        return value

    def clear(self) -> None:
        """Empty all queues."""
        with self._lock:
            self._queues.clear()

    def _queue(self, name: str) -> queue.SimpleQueue[tuple[Shape, Tree]]:
        with self._lock:
            return self._queues.setdefault(name, queue.SimpleQueue())


HOST_QUEUES = HostQueues()
"""The queues of this process."""

INFEED, OUTFEED = "infeed", "outfeed"


def channel(number: int | None) -> str:
    """The name of the queue between the send and the recv of a channel."""
    return f"channel {0 if number is None else number}"


def queue_of(instruction: HloInstruction) -> str | None:
    """The queue that an instruction takes from; a recv does so at its done. None for all others."""
    if instruction.opcode is Opcode.INFEED:
        return INFEED if any(instruction.shape.elements[0].leaves()) else None
    return channel(instruction.attributes.channel_id) if instruction.opcode is Opcode.RECV else None


def transfer_to_infeed(value: Any) -> None:
    """Append an array, or a (nested) tuple of arrays, to the queue that the programs' `infeed` reads."""
    HOST_QUEUES.put(INFEED, value)


def transfer_from_outfeed(shape: Shape) -> Any:
    """The next value that an `outfeed` of a program wrote; waits for it. ExecutionError if its type is not `shape`."""
    return HOST_QUEUES.take(OUTFEED, shape)


def _shape_of(value: Any) -> Shape:
    if isinstance(value, tuple):
        return Shape.tuple([_shape_of(v) for v in value])
    array = np.asarray(value)
    return Shape.array(element_type_of(array.dtype), array.shape)


def _copied(value: Any) -> Tree:
    return tuple([_copied(v) for v in value]) if isinstance(value, tuple) else np.array(value, order="C")

"""StreamExecutor: a device with memory and a queue of its own, as a backend describes it. The name is XLA's.

This interface has only the operations that every such device has. A backend's use of it is in `remote.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import ExecutionError
from .support.records import dataclass

NDArray = np.ndarray[Any, Any]


class DeviceError(ExecutionError):
    """A device refused a command, or a command failed. Raised in the call that waits for its result."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device has not enough memory left."""


@dataclass(frozen=True, slots=True)
class DeviceMemoryUsage:
    """Bytes of a device's memory."""

    size: int
    used: int
    peak: int
    """The most that was used at once."""


class Event(ABC):
    """A point in a device's queue. It has happened when everything before it has been executed."""

    @abstractmethod
    def has_happened(self) -> bool:
        """True once nothing is left to wait for; then `wait` returns at once."""

    @abstractmethod
    def wait(self) -> None:
        """Return when the event has happened. DeviceError if the command that it belongs to failed."""

    @property
    @abstractmethod
    def error(self) -> DeviceError | None:
        """The error of the command, once the event has happened."""


class StreamExecutor(ABC):
    """A device. Its commands are executed one after the other, in the order in which they were given; those that return
    an `Event` are only begun when they return. Safe to use from several threads.

    Addresses are the device's: they mean nothing in the memory of this process, and 0 is none of them.
    """

    name: str

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """The address of a new block of memory. DeviceMemoryError if there is none so large."""

    @abstractmethod
    def deallocate(self, address: int) -> None:
        """Give a block back. Nothing in the queue may still use it: the caller that enqueues keeps the block alive till
        then."""

    @abstractmethod
    def memory_usage(self) -> DeviceMemoryUsage:
        """How much memory is in use."""

    @abstractmethod
    def copy_to_device(self, address: int, data: NDArray, keep: object) -> Event:
        """Enqueue a copy of `data`, a contiguous vector that does not change any more, to `address`. `keep` is released
        when it is done."""

    @abstractmethod
    def copy_from_device(self, address: int, nbytes: int) -> NDArray:
        """The bytes at `address`, a new array of uint8, after all commands before this one: waits."""

    @abstractmethod
    def launch(self, program: Any, addresses: Sequence[int], needs: Sequence[Event], keep: object) -> Event:
        """Enqueue a program of the backend on blocks of memory. It fails without running if one of the events `needs`,
        all earlier in this queue, has failed. `keep` is released when it is done."""

    @abstractmethod
    def synchronize(self) -> None:
        """Return when the queue is empty."""

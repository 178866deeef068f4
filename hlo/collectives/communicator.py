"""The operation that devices provide: exchange blocks of bytes with other devices. Every collective is made of that.

`Communicator.exchange` is the one primitive. It is written for threads (`threads.py`) and for processes (`mpi.py`); the
layers above know neither.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from ..support.records import dataclass

NDArray: TypeAlias = np.ndarray[Any, Any]
Blocks: TypeAlias = Sequence[NDArray]
"""Arrays of bytes (uint8) of rank 1, without gaps."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Which collective devices do together. All that take part must come with an equal one."""

    opcode: str
    detail: str
    """Types, channel and groups, as text: the difference if a device runs another program."""
    name: str = field(default="", compare=False)
    """The instruction's name, for people."""
    members: tuple[int, ...] = field(default=(), compare=False)
    """The devices' numbers, for people; for a permutation all that send or receive."""

    def __str__(self) -> str:
        return f"{self.opcode}{f' {self.name}' if self.name else ''}({self.detail})"


class Communicator(ABC):
    """One device in a run of a program, as that program sees itself and the others.

    `device`: its number, replica * num_partitions + partition, of num_replicas * num_partitions.
    """

    def __init__(self, device: int, num_replicas: int, num_partitions: int) -> None:
        self.device = device
        self.num_replicas = num_replicas
        self.num_partitions = num_partitions
        self.replica, self.partition = divmod(device, num_partitions)

    @abstractmethod
    def exchange(
        self, meeting: Meeting, sends: Mapping[int, Blocks], receives: Mapping[int, Sequence[int]]
    ) -> AbstractContextManager[Mapping[int, Blocks]]:
        """Give `sends[other]` to each device `other` in it; get blocks of `receives[other]` bytes from each in that.

        Both are about other devices only, and each device that is sent to must receive. Inside of the `with` the
        received blocks can be read; the sent blocks must not change before its end. Devices come to exchanges with each
        other in the same order.

        CollectiveError if another device comes with another meeting or other sizes, has failed or finished, or does
        not come in time.
        """


class OneDevice(Communicator):
    """The only device of a program: it has no partners."""

    def __init__(self) -> None:
        super().__init__(0, 1, 1)

    @contextmanager
    def exchange(
        self, meeting: Meeting, sends: Mapping[int, Blocks], receives: Mapping[int, Sequence[int]]
    ) -> Iterator[Mapping[int, Blocks]]:
        assert not sends and not receives, "a device does not send to itself"
        yield {}


ALONE = OneDevice()
_running = threading.local()


def current_communicator() -> Communicator:
    """The communicator of the device that this thread is; outside of a run on devices, the communicator of a single
    device.

    >>> current_communicator().num_replicas
    1
    """
    found: Communicator = getattr(_running, "communicator", ALONE)
    return found


@contextmanager
def as_device(communicator: Communicator) -> Iterator[None]:
    """Inside, this thread is the device of `communicator`."""
    before = current_communicator()
    _running.communicator = communicator
    try:
        yield
    finally:
        _running.communicator = before

"""Which devices there are, and how a program is run on them.

A *world* is all devices that programs can use together: the devices of this process, or of several processes
(`hloom.distributed`). Devices have ids from 0; process k's devices follow process k - 1's.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import ExecutionError
from ..ir import HloModule
from .communicator import ALONE, Communicator, as_device
from .threads import Board, ThreadCommunicator
from .workers import run_in_threads

T = TypeVar("T")


class World(ABC):
    """All devices, in this process and in others."""

    process_index: int
    process_count: int

    @abstractmethod
    def device_counts(self) -> Sequence[int]:
        """The number of devices of each process."""

    @abstractmethod
    def run(
        self, function: Callable[[Communicator], T], num_replicas: int, num_partitions: int, assignment: Sequence[int],
        program: HloModule | None,
    ) -> list[T]:  # fmt: skip
        """See `run_on_devices`."""

    def local_devices(self) -> range:
        """The ids of the devices in this process."""
        counts = self.device_counts()
        first = sum(counts[: self.process_index])
        return range(first, first + counts[self.process_index])

    def process_of(self, device: int) -> int:
        """The process that a device is in, from its id."""
        first = 0
        for process, count in enumerate(self.device_counts()):
            first += count
            if device < first:
                return process
        raise ExecutionError(f"there is no device {device}: there are {first}, from 0")


class LocalWorld(World):
    """The devices of one process: threads."""

    process_index = 0
    process_count = 1

    def device_counts(self) -> Sequence[int]:
        """One number."""
        return (local_device_count(),)

    def run(
        self, function: Callable[[Communicator], T], num_replicas: int, num_partitions: int, assignment: Sequence[int],
        program: HloModule | None,
    ) -> list[T]:  # fmt: skip
        """See `run_on_devices`."""
        if len(assignment) == 1:
            with as_device(ALONE):
                return [function(ALONE)]
        board = Board(len(assignment), collective_timeout())
        devices = [ThreadCommunicator(board, k, num_replicas, num_partitions) for k in range(len(assignment))]
        return run_in_threads(board, function, devices)


def run_on_devices(
    function: Callable[[Communicator], T],
    num_replicas: int = 1,
    num_partitions: int = 1,
    assignment: Sequence[int] | None = None,
    program: HloModule | None = None,
) -> list[T]:
    """Call `function(communicator)` for each device of this process that takes part, each in a thread of its own.

    `assignment[replica * num_partitions + partition]` is the id of the device with that number; by default the first
    devices of the world. `program`: the program that the devices run; processes make sure that they all run the same.
    Returns the results of this process's devices, in the order of their numbers.

    Inside of `function`, `current_communicator()` is its argument. If devices fail, the error of the first one is
    raised. ExecutionError if the assignment does not fit.

    >>> set_local_device_count(2)
    >>> run_on_devices(lambda device: device.replica, num_replicas=2)
    [0, 1]
    """
    found = _checked(num_replicas, num_partitions, assignment)
    return world().run(function, num_replicas, num_partitions, found, program)


def local_numbers(
    num_replicas: int, num_partitions: int, assignment: Sequence[int] | None, given: int | None = None
) -> list[int]:
    """The numbers of the devices in this process that `run_on_devices` runs: it returns a result for each, in order.

    `given`: for how many there are arguments; ExecutionError if that is another number.

    >>> set_local_device_count(4)
    >>> local_numbers(2, 1, [3, 1])
    [0, 1]
    """
    here = world().local_devices()
    numbers = [k for k, d in enumerate(_checked(num_replicas, num_partitions, assignment)) if d in here]
    if given is not None and given != len(numbers):
        where = "" if world().process_count == 1 else " of this process"
        raise ExecutionError(
            f"{len(numbers)} devices{where} run a program for {num_replicas} replicas and {num_partitions} partitions; "
            f"there are arguments for {given}"
        )
    return numbers


def _checked(num_replicas: int, num_partitions: int, assignment: Sequence[int] | None) -> Sequence[int]:
    count, there = num_replicas * num_partitions, sum(world().device_counts())
    what = f"a program for {num_replicas} replicas and {num_partitions} partitions"
    if assignment is None:
        assignment = range(count)
    if len(assignment) != count or len(set(assignment)) != count or min(assignment, default=0) < 0:
        raise ExecutionError(f"{what} needs {count} different devices, not {list(assignment)}")
    if max(assignment) >= there:
        last = "there is only 0" if there == 1 else f"there are only 0 to {there - 1}"
        raise ExecutionError(
            f"{what} needs device {max(assignment)}, {last}: set the environment variable HLOOM_NUM_DEVICES to at "
            f"least {max(assignment) + 1} before devices are first used, or start more processes"
        )
    return assignment


MAX_LOCAL_DEVICES = 1024
"""Of one process: each is a thread."""
_local_devices: int | None = None
_timeout = 0.0
_DEFAULT_TIMEOUT = 40.0
"""Seconds; XLA's xla_cpu_collective_call_terminate_timeout_seconds."""
_world: World = LocalWorld()


def world() -> World:
    """The devices that programs can use.

    >>> world().process_count
    1
    """
    return _world


def set_world(new: World | None) -> None:
    """Make programs use other devices; None: only the devices of this process."""
    global _world
    _world = new or LocalWorld()


def local_device_count() -> int:
    """The number of devices of this process: HLOOM_NUM_DEVICES as it is when first read, until another number is set;
    else 1.

    ExecutionError if the variable holds no number from 1 to 1024.

    >>> set_local_device_count(4)
    >>> local_device_count()
    4
    """
    global _local_devices
    if _local_devices is None:
        text = os.environ.get("HLOOM_NUM_DEVICES", "1")
        if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= MAX_LOCAL_DEVICES:
            raise ExecutionError(f"HLOOM_NUM_DEVICES must be a number from 1 to {MAX_LOCAL_DEVICES}, not {text[:40]!r}")
        _local_devices = int(text)
    return _local_devices


def set_local_device_count(count: int) -> None:
    """Give this process another number of devices. ExecutionError unless it is from 1 to 1024."""
    global _local_devices
    if not 1 <= count <= MAX_LOCAL_DEVICES:
        raise ExecutionError(f"a process has 1 to {MAX_LOCAL_DEVICES} devices, not {count}")
    _local_devices = count


def collective_timeout() -> float:
    """The seconds that a device waits for others: HLOOM_COLLECTIVE_TIMEOUT, until another number is set; else 40.

    ExecutionError if the variable holds no positive number.

    >>> collective_timeout()
    40.0
    """
    if not _timeout:
        text = os.environ.get("HLOOM_COLLECTIVE_TIMEOUT", str(_DEFAULT_TIMEOUT))
        try:
            set_collective_timeout(float(text))
        except ValueError:
            raise ExecutionError(f"HLOOM_COLLECTIVE_TIMEOUT must be seconds, not {text!r}") from None
    return _timeout


def set_collective_timeout(seconds: float) -> None:
    """Let devices wait for others that long. ExecutionError unless it is positive."""
    global _timeout
    if not seconds > 0:
        raise ExecutionError(f"the time that devices wait for each other must be positive, not {seconds:g} seconds")
    _timeout = float(seconds)

"""Several devices that run one program together: the devices, and the operations that exchange data. NumPy only.

    groups.py        which devices do a collective together
    communicator.py  the operation of a device: exchange blocks of bytes with others
    operations.py    each collective, in terms of that exchange; collective.py: an instruction, as a device does it
    threads.py       devices that are threads of this process; workers.py: the threads; mpi.py: several processes
    world.py         which devices there are, here and in other processes, and how to run a program on them

A program for R replicas and P partitions runs on R * P devices. Within a run a device is a *number*, replica * P +
partition. Which device of the world has which number is the run's *assignment*: a list of the devices' ids. All devices
run the same code. A collective is a place in it where devices wait for each other.

A backend runs a program with `run_on_devices(function, num_replicas, num_partitions, assignment)`: it calls
`function(communicator)` in one thread for each device of the assignment that is in this process. A device that fails
makes all others fail; none waits longer than `collective_timeout()` seconds.
"""

from __future__ import annotations

from .communicator import Communicator, Meeting, current_communicator
from .groups import CollectiveGroupMode, collective_group_mode, device_groups, device_pairs, group_of
from .world import (
    World,
    collective_timeout,
    local_device_count,
    local_numbers,
    run_on_devices,
    set_collective_timeout,
    set_local_device_count,
    set_world,
    world,
)

__all__ = [
    "CollectiveGroupMode",
    "Communicator",
    "Meeting",
    "World",
    "collective_group_mode",
    "collective_timeout",
    "current_communicator",
    "device_groups",
    "device_pairs",
    "group_of",
    "local_device_count",
    "local_numbers",
    "run_on_devices",
    "set_collective_timeout",
    "set_local_device_count",
    "set_world",
    "world",
]

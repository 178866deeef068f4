"""A module on several devices: the evaluator in one thread for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..collectives.communicator import Communicator
from ..collectives.world import local_numbers, run_on_devices
from ..ir import HloModule
from ..support.value_tree import leaves_of
from .table import NDArray, checked_arguments, evaluate_computation


def evaluate_on_devices(
    module: HloModule, arguments: Sequence[Sequence[Any]], devices: Sequence[int] | None = None
) -> list[list[NDArray]]:
    """Run `module` on its replica_count * num_partitions devices at once; return the result's leaves for each.

    `arguments` has, for each device of this process in the order of the devices' numbers (replica * num_partitions +
    partition), one array-like for each leaf of the entry's parameters. `devices`: the id of the device with each
    number, by default the first ones that there are.

    ExecutionError if their number, or an argument's dtype or dimensions, are not the parameters', or if there are not
    so many devices. CollectiveError if devices do not come to the same collectives.

    >>> import numpy as np
    >>> from hloom import hlo
    >>> from hloom.hlo.collectives import set_local_device_count
    >>> module = hlo.parse('''
    ... HloModule m, replica_count=2
    ... add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT sum = f32[] add(x, y) }
    ... ENTRY e { p = f32[2] parameter(0)  ROOT r = f32[2] all-reduce(p), replica_groups={}, to_apply=add }
    ... ''')
    >>> set_local_device_count(2)
    >>> hlo.evaluate_on_devices(module, [[np.float32([1, 2])], [np.float32([10, 20])]])
    [[array([11., 22.], dtype=float32)], [array([11., 22.], dtype=float32)]]
    """
    numbers = local_numbers(module.replica_count, module.num_partitions, devices, len(arguments))
    values = {k: checked_arguments(module, each) for k, each in zip(numbers, arguments, strict=True)}

    def run(device: Communicator) -> list[NDArray]:
        return list(leaves_of(evaluate_computation(module.entry, values[device.device])))

    return run_on_devices(run, module.replica_count, module.num_partitions, devices, module)

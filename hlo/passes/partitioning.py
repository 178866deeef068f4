"""The pass `spmd-partitioner`, and programs of whole arrays on several devices: cut, run, put together.

The partitioner itself is in `partition/`. It is loaded when a program for several devices comes, which is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ExecutionError
from ..ir import HloInstruction, HloModule
from ..sharding import HloSharding
from ..support.records import dataclass
from .rewrite import map_computations, rewrite_computation

if TYPE_CHECKING:
    from ..backend import Executable
    from .partition import Partitioned

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Partition:
    """Replaces a program of whole arrays by one device's program, if it states shardings and its header has a number of
    partitions. A program that is one device's already stays as it is."""

    name: str = "spmd-partitioner"

    def __call__(self, module: HloModule) -> HloModule:
        if module.num_partitions == 1 or not needs_partitioning(module):
            return module
        return _partition(module, module.num_partitions).module


def states_shardings(module: HloModule) -> bool:
    """True if an instruction says how its array is cut, or begins a shard_map."""
    return any(
        key in ("sharding", "xla.sdy.in_shardings")
        for i in module.instructions()
        if i.annotations or i.frontend_attributes
        for key, _ in (*i.annotations, *i.frontend_attributes)
    )


def needs_partitioning(module: HloModule) -> bool:
    """True for a program of whole arrays that states shardings for several devices."""
    found: bool = states_shardings(module) and import_module(".partition", __package__).needs_partitioning(module)
    return found


def with_partitions(module: HloModule) -> HloModule:
    """The module with the number of partitions that its shardings name; itself if they name one, or if it is the
    program of one device. (The text of JAX's `lower` states shardings, and not the number.)"""
    if module.num_partitions > 1 or not needs_partitioning(module):
        return module
    return replace(module, num_partitions=import_module(".partition", __package__).partitions_of(module))


def without_shardings(module: HloModule) -> HloModule:
    """The module without the shardings that its instructions state, so that others can be tried."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        kept = tuple([(key, text) for key, text in moved.annotations if key != "sharding"])
        return moved if len(kept) == len(moved.annotations) else replace(moved, annotations=kept)

    return map_computations(module, lambda computation: rewrite_computation(computation, visit))


def _partition(module: HloModule, count: int) -> Partitioned:
    found: Partitioned = import_module(".partition", __package__).partition(module, count)
    return found


class WholeArrays:
    """A program of whole arrays, partitioned and compiled, that is called as one on one device would be: it cuts its
    arguments, runs on all devices, and puts the results together. UnsupportedError and ShardingError as `partition`."""

    def __init__(self, module: HloModule, compile: Callable[[HloModule], Executable]) -> None:
        self.partitioned: Partitioned = _partition(module, module.num_partitions)
        self.result_shapes = [leaf.with_default_layout() for leaf in module.entry.root.shape.leaves()]
        for sharding in (*self.partitioned.parameter_shardings, *self.partitioned.result_shardings):
            if sharding.is_manual:
                raise ExecutionError(
                    f"module {module.name} takes or returns arrays that are one device's own (sharding={{manual}}): "
                    "partition it, and run it on the arrays of each device"
                )
        self.executable: Executable = compile(self.partitioned.module)

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        """The whole results for whole arguments. ExecutionError if there are not so many devices, or if some are in
        other processes."""
        devices = range(self.partitioned.module.num_partitions)
        shardings = self.partitioned.parameter_shardings
        parts = [[_part(x, s, k) for x, s in zip(arguments, shardings, strict=True)] for k in devices]
        found = self.executable.execute_on_devices(parts)
        if len(found) != len(devices):
            raise ExecutionError(
                f"{len(found)} of {len(devices)} devices are in this process: whole results are where all parts are"
            )
        return [
            self._joined([found[k][n] for k in devices], sharding, shape.dimensions)
            for n, (sharding, shape) in enumerate(
                zip(self.partitioned.result_shardings, self.result_shapes, strict=True)
            )
        ]

    def execute_on_devices(self, arguments: Sequence[Sequence[NDArray]]) -> list[list[NDArray]]:
        """As `execute`, in the form of a program that takes a list of arrays for each device: here of one list."""
        (whole,) = arguments
        return [self.execute(whole)]

    @staticmethod
    def _joined(parts: Sequence[Any], sharding: HloSharding, dimensions: Sequence[int]) -> NDArray:
        arrays = [np.asarray(part) for part in parts]
        whole = np.empty(dimensions, arrays[0].dtype)
        for device, array in enumerate(arrays):
            whole[sharding.part(device, dimensions)] = array
        return whole


def _part(array: NDArray, sharding: HloSharding, device: int) -> NDArray:
    return np.array(array[sharding.part(device, array.shape)], order="C")


def compiled(
    module: HloModule, compile: Callable[[HloModule], Executable]
) -> tuple[HloModule, Executable | WholeArrays]:
    """The module as its caller sees it, and the executable. A program of whole arrays for several partitions is one
    program on one device for its caller."""
    if module.num_partitions > 1 and needs_partitioning(module):
        return replace(module, num_partitions=1), WholeArrays(module, compile)
    return module, compile(module)

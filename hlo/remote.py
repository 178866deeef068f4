"""Programs on a device with memory of its own: TransferManager, RemoteBuffer, RemoteExecutable.

A backend implements a `StreamExecutor` and a compiler, and sets three things in a subclass of `RemoteExecutable`: the
module, the program, and the bytes of scratch memory. Calls are asynchronous then: they return buffers at once, and
reading the contents waits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .backend import DeviceBuffer, Executable, NDArray
from .errors import ExecutionError
from .host_buffers import HostBuffer, array_in
from .ir import HloModule
from .physical_array import to_physical
from .shape import Shape
from .stream_executor import Event, StreamExecutor


class DeviceMemory:
    """A block of a device's memory, given back when the last reference disappears. An empty one has address 0."""

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, device: StreamExecutor, nbytes: int) -> None:
        """DeviceMemoryError if the device has no such block left."""
        self.nbytes: int = nbytes
        self.address: int = device.allocate(nbytes) if nbytes else 0
        if nbytes:
            # Not at exit: the device ends with the process.
            weakref.finalize(self, device.deallocate, self.address).atexit = False


class RemoteBuffer(DeviceBuffer):
    """An array in a device's memory, in the layout of its shape."""

    __slots__ = ("_host", "_memory", "device", "event", "shape")

    def __init__(self, device: StreamExecutor, shape: Shape, memory: DeviceMemory, event: Event | None = None) -> None:
        """`event`: after it the contents are there."""
        self.device = device
        self.shape = shape
        self._memory = memory
        self.event: Event | None = event
        self._host: HostBuffer | None = None

    @property
    def memory(self) -> DeviceMemory:
        """The block that holds the array."""
        return self._memory

    @property
    def address(self) -> int:  # type: ignore[override]  # in the memory of this process, see DeviceBuffer
        return self._on_host().address

    def _on_host(self) -> HostBuffer:
        if self._host is None:
            assert self.device is not None
            self.block_until_ready()
            data = self.device.copy_from_device(self._memory.address, self._memory.nbytes)
            array = array_in(data, self.shape)
            self._host = HostBuffer(array, self.shape.with_default_layout())
        return self._host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return self._on_host().__array__(dtype, copy)

    def is_exclusive(self) -> bool:
        return True  # NumPy's arrays are copies, and commands in the queue run before the memory's next owner

    def is_ready(self) -> bool:
        return self.event is None or self.event.has_happened()

    def block_until_ready(self) -> None:
        if self.event is not None:
            self.event.wait()

    def __reduce__(self) -> tuple[Any, ...]:
        return HostBuffer, (np.array(self), self.shape.with_default_layout())


class TransferManager:
    """Brings arrays to a device and back. The class and its methods have XLA's names.

    An array is on the device as `to_physical` writes it in `host_shape_to_device_shape`; a device with other layouts
    than the host's overrides that method alone.
    """

    def __init__(self, device: StreamExecutor) -> None:
        self.device = device

    def host_shape_to_device_shape(self, shape: Shape) -> Shape:
        """The shape of an array, with the layout that it has on the device."""
        return shape.with_default_layout()

    def allocate(self, shape: Shape) -> RemoteBuffer:
        """Memory for an array of a device shape, with unknown contents. DeviceMemoryError if there is none."""
        return RemoteBuffer(self.device, shape, DeviceMemory(self.device, shape.byte_size))

    def transfer_to_device(self, array: NDArray, shape: Shape) -> RemoteBuffer:
        """The array on the device. It has the type `shape`, a device shape, and must not change any more."""
        memory = DeviceMemory(self.device, shape.byte_size)
        if not memory.nbytes:
            return RemoteBuffer(self.device, shape, memory)
        dense = np.ascontiguousarray(array) if shape.array_layout.is_row_major else to_physical(array, shape)
        event = self.device.copy_to_device(memory.address, dense.reshape(-1).view(np.uint8), (memory, array))
        return RemoteBuffer(self.device, shape, memory, event)

    def on_device(self, buffer: DeviceBuffer, shape: Shape) -> RemoteBuffer:
        """The buffer itself if it is on this device in this layout; otherwise a copy that is."""
        if isinstance(buffer, RemoteBuffer) and buffer.device is self.device and buffer.shape == shape:
            return buffer
        return self.transfer_to_device(buffer.__array__(), shape)


class RemoteExecutable(Executable):
    """A module compiled for a device. A launch gets the addresses of the parameters' blocks, of the results' blocks, of
    a block of scratch memory and of the constants, in this order; an empty block has address 0.

    `constants`: bytes that are copied to the device once, now. `aliases`: for each result that takes over a donated
    parameter's memory, the number of that parameter.
    """

    def __init__(
        self, module: HloModule, transfers: TransferManager, program: Any, scratch_bytes: int,
        constants: bytes = b"", aliases: dict[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.module = module
        self._constants = DeviceMemory(transfers.device, len(constants))
        if constants:
            data = np.frombuffer(constants, np.uint8)
            transfers.device.copy_to_device(self._constants.address, data, (self._constants, constants))
        self.device: StreamExecutor = transfers.device
        self.program = program
        self.scratch_bytes = scratch_bytes
        self._transfers = transfers
        self._aliases = aliases or {}
        place = transfers.host_shape_to_device_shape
        self._parameters = tuple(place(leaf) for p in module.entry.parameters for leaf in p.shape.leaves())
        self._results = tuple(place(leaf) for leaf in module.entry.root.shape.leaves())

    @property
    def parameter_shapes(self) -> Sequence[Shape]:
        return self._parameters

    @property
    def result_shapes(self) -> Sequence[Shape]:
        return self._results

    def call(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        transfers, device = self._transfers, self.device
        given = [transfers.on_device(b, s) for b, s in zip(arguments, self._parameters, strict=True)]
        blocks = [
            given[self._aliases[k]].memory if k in self._aliases else DeviceMemory(device, shape.byte_size)
            for k, shape in enumerate(self._results)
        ]
        scratch = DeviceMemory(device, self.scratch_bytes)
        memory = [*(buffer.memory for buffer in given), *blocks, scratch, self._constants]
        # The queue keeps all blocks alive: an argument may be dropped before the program has read it.
        needs = [buffer.event for buffer in given if buffer.event is not None]
        event = device.launch(self.program, [block.address for block in memory], needs, memory)
        return [RemoteBuffer(device, s, m, event) for s, m in zip(self._results, blocks, strict=True)]

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        buffers = [
            HostBuffer(array, shape.with_default_layout())
            for array, shape in zip(checked(self, arguments, np.array), self._parameters, strict=True)
        ]
        return [np.asarray(result) for result in self.call(list(buffers))]


def checked(
    executable: Executable, arguments: Sequence[NDArray], make: Callable[[NDArray], NDArray] = np.asarray
) -> list[NDArray]:
    """The arrays, each through `make`. ExecutionError if their number or types differ from the parameters'."""
    shapes = executable.parameter_shapes
    name = executable.module.name
    if len(arguments) != len(shapes):
        raise ExecutionError(f"{name} takes {len(shapes)} arrays, got {len(arguments)}")
    arrays = [np.asarray(a) for a in arguments]
    for number, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if array.dtype != shape.element.dtype or array.shape != shape.dimensions:
            expected = shape.with_default_layout()
            raise ExecutionError(
                f"argument {number} of {name} must be {expected}, got {array.dtype}{list(array.shape)}"
            )
    return [make(a) for a in arrays]

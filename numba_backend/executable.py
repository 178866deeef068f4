"""NumbaExecutable: a program with memory for its results and scratch; takes and returns NumPy arrays."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..hlo.backend import DeviceBuffer, Executable, MemoryAnalysis
from ..hlo.collectives.communicator import current_communicator
from ..hlo.errors import ExecutionError
from ..hlo.host_buffers import (
    BytesBuffer,
    HostBuffer,
    HostMemory,
    PhysicalBuffer,
    RetypedBuffer,
    array_in,
    buffer_of,
)
from ..hlo.ir import HloModule
from ..hlo.kernel_texts import KernelTexts
from ..hlo.layout import row_major
from ..hlo.passes.record import PassRecords
from ..hlo.runners import ArraySlots
from ..hlo.shape import Shape
from ..hlo.support.lazy import lazy_property
from ..hlo.support.memory_pressure import allocating
from .runtime.array_calls import BufferClasses, ResultMaker, runner
from .runtime.memory import LargeMemory, Memory, allocator, small_bin, with_memory
from .runtime.program import Program

if TYPE_CHECKING:
    from ..hlo.passes.stages import Stages
    from ..hlo.timeline.work import Work

NDArray = np.ndarray[Any, Any]


class _Result(HostMemory):
    """A result in memory of its own, in the layout of its shape."""

    __slots__ = ()
    nbytes: int
    read_only: Callable[..., NDArray]
    """See `Memory`."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        shape, layout = self.shape, self.shape.array_layout
        if layout is not row_major(len(shape.dimensions)) and not layout.is_row_major:
            return array_in(self.read_only(_BYTES, (self.nbytes,)), shape, dtype, copy)
        array = self.read_only(shape.element.dtype, shape.dimensions)
        if dtype is None and not copy:
            return array
        return allocating(np.array, array, dtype=dtype, copy=copy)

    def is_exclusive(self) -> bool:
        return True  # arrays over its memory hold the buffer itself


class _SmallResult(_Result, Memory):
    __slots__ = ("shape",)


class _LargeResult(_Result, LargeMemory):
    __slots__ = ("shape",)


_BYTES = np.dtype(np.uint8)
_BUFFERS = BufferClasses(
    _SmallResult, _LargeResult, HostBuffer,
    (_SmallResult, HostBuffer, _LargeResult, BytesBuffer, RetypedBuffer, PhysicalBuffer),
)  # fmt: skip


def result_maker(shape: Shape) -> Callable[[], DeviceBuffer]:
    """A function that makes buffers for results of this shape; their contents are undefined."""
    return allocator(shape.byte_size, _SmallResult, _LargeResult, shape)


class Frame(NamedTuple):
    """The data that calls need besides the program: the parameters and results, which parameters are donated,
    memory."""

    name: str
    parameters: tuple[Shape, ...]
    """The leaves of the parameters' shapes."""
    results: tuple[Shape, ...]
    donated: tuple[tuple[int, int], ...]
    """(result, parameter): the result takes over the parameter's memory."""
    arena_size: int
    replica_count: int
    num_partitions: int


class Details(Protocol):
    """The parts of a program that people ask for, and that calls do not need."""

    module: HloModule
    program: Program
    """A program with these rows."""

    def kernels(self) -> KernelTexts:
        """See `Executable`."""

    def memory_analysis(self) -> MemoryAnalysis:
        """See `Executable`."""

    def passes(self) -> PassRecords:
        """See `Executable`."""

    def rows(self) -> Sequence[Work]:
        """See `Executable`."""

    def stages(self) -> Stages:
        """See `Executable`."""


class NumbaExecutable(Executable):
    """A compiled module. Safe to call from several threads at once."""

    def __init__(self, frame: Frame, program: Program, find_details: Callable[[], Details]) -> None:
        """`find_details` runs when a user asks for kernels, buffers or passes."""
        self._frame = frame
        self._program = program
        self._find_details = find_details
        arena_size = frame.arena_size
        total = len(frame.parameters) + len(frame.results) + (arena_size > 0)
        # A program knows only the bases up to the last one that a row uses; no row uses an empty array.
        self._run = program.run if program.bases == total else lambda bases: program.run(bases[: program.bases])
        if frame.replica_count * frame.num_partitions > 1:
            self._run = self._on_device
        self._parameters, self._results, self._donated = frame.parameters, frame.results, frame.donated
        self._run_in_arena = with_memory(arena_size, self._run) if arena_size else self._run
        self._fresh = tuple(map(result_maker, frame.results))
        """Functions that make the results' buffers."""
        self._retyped = tuple(k for k, p in self._donated if self._results[k] != self._parameters[p])
        """Donated results with another type or layout than the parameter that they are stored over."""

    @lazy_property
    def _details(self) -> Details:
        return self._find_details()

    @property
    def module(self) -> HloModule:  # type: ignore[override]
        """The module after all passes. Of a program from the store, they run now."""
        return self._details.module

    def _on_device(self, bases: list[int]) -> None:
        """Run as the device that this thread is. ExecutionError if it is none of a run of this program."""
        device, frame = current_communicator(), self._frame
        if (device.num_replicas, device.num_partitions) != (frame.replica_count, frame.num_partitions):
            raise ExecutionError(
                f"{frame.name} is for {frame.replica_count} replicas and {frame.num_partitions} partitions: "
                "`execute_on_devices` takes the arguments of each of them"
            )
        program, words = self._program, array("I", (device.replica, device.partition))
        if len(bases) == len(self._parameters) + len(self._results):
            bases.append(0)  # there is no arena, and no row uses it
        bases.append(words.buffer_info()[0])
        program.run(bases[: program.bases])

    @property
    def overwrites_arguments(self) -> bool:
        """Whether a result takes over the memory of an argument."""
        return bool(self._donated)

    @property
    def parameter_shapes(self) -> Sequence[Shape]:
        return self._parameters

    @property
    def result_shapes(self) -> Sequence[Shape]:
        return self._results

    def call(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        if self._donated:
            return self._call_with_donation(arguments)
        bases = [a.address for a in arguments]
        results = [make() for make in self._fresh]
        bases += [result.address for result in results]
        self._run_in_arena(bases)
        return results

    def direct_call(self) -> tuple[Sequence[Callable[[], DeviceBuffer]], Callable[[list[int]], None]] | None:
        return None if self._donated else (self._fresh, self._run_in_arena)

    def native_runner(
        self, run: Callable[[Sequence[Any]], Any], arrays: ArraySlots, captured: Sequence[DeviceBuffer],
        avals: Sequence[object], finish: Callable[[Sequence[Any]], Any] | None, donated: Sequence[int],
    ) -> Callable[[Sequence[Any]], Any]:  # fmt: skip
        frame = self._frame
        arena = small_bin(frame.arena_size) if frame.arena_size else None
        taken = dict(self._donated)
        is_alone = frame.replica_count * frame.num_partitions == 1
        if not is_alone or self._retyped or (frame.arena_size and arena is None) or not {*taken.values()} <= {*donated}:
            return run
        makers = [
            ResultMaker(make, small_bin(shape.byte_size), shape.byte_size, shape, taken.get(k))
            for k, (make, shape) in enumerate(zip(self._fresh, self._results, strict=True))
        ]
        count = len(self._parameters) - len(captured)
        made = runner(self._program, run, arrays, _BUFFERS, count, captured, avals, makers, arena, finish, donated)
        return run if made is None else made

    def _call_with_donation(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        reused = dict(self._donated)
        results: list[DeviceBuffer] = [
            arguments[reused[k]] if k in reused else make() for k, make in enumerate(self._fresh)
        ]
        bases = [a.address for a in arguments]
        bases += [r.address for r in results]
        self._run_in_arena(bases)
        for k in self._retyped:
            results[k] = RetypedBuffer(results[k], self._results[k])
        return results

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        if len(arguments) != len(self._parameters):
            raise ExecutionError(
                f"{self._frame.name} takes {len(self._parameters)} arrays, got {len(arguments)}"
            )
        donated = {parameter for _, parameter in self._donated}
        buffers = [
            self._argument(k, np.asarray(a), shape, copy=k in donated)
            for k, (a, shape) in enumerate(zip(arguments, self._parameters, strict=True))
        ]
        return [np.asarray(result) for result in self.call(buffers)]

    def _argument(self, number: int, array: NDArray, shape: Shape, copy: bool) -> DeviceBuffer:
        if array.dtype != shape.element.dtype or array.shape != shape.dimensions:
            raise ExecutionError(
                f"argument {number} of {self._frame.name} must be {shape}, got {array.dtype}{list(array.shape)}"
            )
        return buffer_of(array, shape, copy)

    def kernels(self) -> KernelTexts:
        return self._details.kernels()

    def memory_analysis(self) -> MemoryAnalysis:
        return self._details.memory_analysis()

    def passes(self) -> PassRecords:
        return self._details.passes()

    def rows(self) -> Sequence[Work]:
        return self._details.rows()

    def stages(self) -> Stages:
        return self._details.stages()


def ready(frame: Frame, program: Program, find_details: Callable[[], Details]) -> NumbaExecutable:
    """The executable of a program without rows: it was not made in this process, or is large. `find_details`: the
    stages. They run when a user asks for kernels, buffers or passes."""
    find = functools.cache(find_details)
    program.title, program.twin = frame.name, lambda: find().program
    return NumbaExecutable(frame, program, find)

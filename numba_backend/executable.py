"""NumbaExecutable: a program with memory for its results and scratch; takes and returns NumPy arrays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hlo.backend import DeviceBuffer, Executable, MemoryAnalysis
from ..hlo.buffers.assignment import AllocationKind, BufferAssignment
from ..hlo.collectives.communicator import current_communicator
from ..hlo.errors import ExecutionError
from ..hlo.host_buffers import HostMemory, RetypedBuffer, array_in, buffer_of, held_alone
from ..hlo.ir import HloModule
from ..hlo.kernel_texts import KernelTexts
from ..hlo.layout import row_major
from ..hlo.memory_pressure import allocating
from ..hlo.passes.record import PassRecord, PassRecords
from ..hlo.shape import Shape
from ..hlo.text.escape import escape
from .lowering import LoweredModule
from .runtime.memory import Block, allocate

NDArray = np.ndarray[Any, Any]


class BlockBuffer(HostMemory):
    """A result in its own block of memory, in the layout of its shape."""

    __slots__ = ("_block", "address", "shape")

    def __init__(self, shape: Shape, block: Block) -> None:
        self.shape = shape
        self._block = block
        self.address = block.address

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        shape, layout = self.shape, self.shape.array_layout
        if layout is not row_major(len(shape.dimensions)) and not layout.is_row_major:
            return array_in(np.asarray(self._block), shape, dtype, copy)
        array = self._block.read_only(shape.element.dtype, shape.dimensions)
        if dtype is None and not copy:
            return array
        return allocating(np.array, array, dtype=dtype, copy=copy)

    def is_exclusive(self) -> bool:
        return held_alone(self, "_block")


class NumbaExecutable(Executable):
    """A compiled module. Safe to call from several threads at once."""

    def __init__(
        self, module: HloModule, lowered: LoweredModule, assignment: BufferAssignment, records: Sequence[PassRecord]
    ) -> None:
        self.module = module
        self._lowered = lowered
        self._assignment = assignment
        self._records = tuple(records)
        program = lowered.program
        total = len(assignment.parameters) + len(assignment.outputs) + (lowered.arena_size > 0)
        # A program knows only the bases up to the last one that a row uses; no row uses an empty array.
        self._run = program.run if program.bases == total else lambda bases: program.run(bases[: program.bases])
        if module.replica_count * module.num_partitions > 1:
            self._run = self._on_device
        self._parameters = tuple(leaf for p in module.entry.parameters for leaf in p.shape.leaves())
        self._results = tuple(module.entry.root.shape.leaves())
        self._arena_size = lowered.arena_size
        fresh: list[tuple[Shape, int]] = []
        self._donated: list[tuple[int, int]] = []
        """(result, parameter): the result takes over the parameter's memory."""
        for k, (shape, place) in enumerate(zip(self._results, assignment.outputs, strict=True)):
            if place.allocation.kind is AllocationKind.PARAMETER:
                self._donated.append((k, place.allocation.index))
            fresh.append((shape, shape.byte_size))
        self._fresh = tuple(fresh)
        self._only = fresh[0] if len(fresh) == 1 and not self._donated and not lowered.arena_size else None
        """The result, if there is only one, in fresh memory, and the program needs no other memory."""
        self._retyped = tuple(k for k, p in self._donated if self._results[k] != self._parameters[p])
        """Results that have another type or layout than the parameter whose memory they take over."""

    def _on_device(self, bases: list[int]) -> None:
        """Run as the device that this thread is. ExecutionError if it is none of a run of this program."""
        device, module = current_communicator(), self.module
        if (device.num_replicas, device.num_partitions) != (module.replica_count, module.num_partitions):
            raise ExecutionError(
                f"{module.name} is for {module.replica_count} replicas and {module.num_partitions} partitions: "
                "`execute_on_devices` takes the arguments of each of them"
            )
        program, words = self._lowered.program, array("I", (device.replica, device.partition))
        if len(bases) == len(self._parameters) + len(self._results):
            bases.append(0)  # there is no arena, and no row uses it
        bases.append(words.buffer_info()[0])
        program.run(bases[: program.bases])

    @property
    def parameter_shapes(self) -> Sequence[Shape]:
        return self._parameters

    @property
    def result_shapes(self) -> Sequence[Shape]:
        return self._results

    def call(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        if self._only is not None:  # the shortest way for the commonest case
            shape, nbytes = self._only
            block = allocate(nbytes)
            bases = [a.address for a in arguments]
            bases.append(block.address)
            self._run(bases)
            return [BlockBuffer(shape, block)]
        if self._donated:
            return self._call_with_donation(arguments)
        blocks = [allocate(nbytes) for _, nbytes in self._fresh]
        bases = [a.address for a in arguments]
        bases += [b.address for b in blocks]
        if self._arena_size:
            arena = allocate(self._arena_size)
            bases.append(arena.address)
        self._run(bases)
        return [BlockBuffer(shape, block) for (shape, _), block in zip(self._fresh, blocks)]

    def _call_with_donation(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        reused = dict(self._donated)
        results: list[DeviceBuffer] = [
            arguments[reused[k]] if k in reused else BlockBuffer(shape, allocate(nbytes))
            for k, (shape, nbytes) in enumerate(self._fresh)
        ]
        bases = [a.address for a in arguments]
        bases += [r.address for r in results]
        arena = allocate(self._arena_size)
        bases.append(arena.address)
        self._run(bases)
        for k in self._retyped:
            results[k] = RetypedBuffer(results[k], self._results[k])
        return results

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        if len(arguments) != len(self._parameters):
            raise ExecutionError(
                f"{self.module.name} takes {len(self._parameters)} arrays, got {len(arguments)}"
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
                f"argument {number} of {self.module.name} must be {shape}, got {array.dtype}{list(array.shape)}"
            )
        return buffer_of(array, shape, copy)

    def kernels(self) -> KernelTexts:
        uses: dict[str, list[tuple[str, str]]] = {}
        for use in self._lowered.kernels:
            values = ", ".join(f"{name} = {value}" for name, value in use.values)
            uses.setdefault(use.source, []).append((use.instruction, values))
        found = KernelTexts()
        for source, users in uses.items():
            comments = [f"# {escape(name)}" + (f": {values}" if values else "") for name, values in users]
            found[users[0][0]] = "\n".join([*comments, source])
        return found

    def memory_analysis(self) -> MemoryAnalysis:
        assignment = self._assignment
        aliased = sum(self._results[k].byte_size for k, _ in self._donated)
        report = assignment.report()
        return MemoryAnalysis(
            argument_size_in_bytes=sum(s.byte_size for s in self._parameters),
            output_size_in_bytes=sum(s.byte_size for s in self._results),
            alias_size_in_bytes=aliased,
            temp_size_in_bytes=self._arena_size,
            constant_size_in_bytes=assignment.total_size(AllocationKind.CONSTANT),
            generated_code_size_in_bytes=self._lowered.code_bytes,
            text=report.to_text(),
            report=report,
        )

    def passes(self) -> PassRecords:
        return PassRecords(self._records)

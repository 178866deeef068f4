"""A compiled C function as an executable: memory for its results and its temporaries, and one call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from hloom.hlo import ExecutionError, HloModule, Shape
from hloom.hlo.backend import DeviceBuffer, Executable, MemoryAnalysis, NDArray
from hloom.hlo.buffers.assignment import AllocationKind, BufferAssignment
from hloom.hlo.host_buffers import HostBuffer
from hloom.hlo.kernel_texts import KernelTexts
from hloom.hlo.passes.record import PassRecord, PassRecords
from hloom.hlo.remote import checked
from hloom.numba_backend.executable import result_maker
from hloom.numba_backend.runtime.memory import allocate

from .build import Library


class CExecutable(Executable):
    """Safe to call from several threads at once: a call shares no memory with another one."""

    def __init__(
        self, module: HloModule, text: str, library: Library, assignment: BufferAssignment, temporary_bytes: int,
        records: Sequence[PassRecord],
    ) -> None:  # fmt: skip
        self.module = module
        self._text = text
        self._library = library
        self._assignment = assignment
        self._temporary_bytes = temporary_bytes
        self._records = records
        self._parameters = tuple(leaf for p in module.entry.parameters for leaf in p.shape.leaves())
        self._results = tuple(module.entry.root.shape.leaves())
        self._donated = {
            number: place.allocation.index
            for number, place in enumerate(assignment.outputs)
            if place.allocation.kind is AllocationKind.PARAMETER
        }
        """The parameter from which a result takes over the memory."""
        self._arguments = ctypes.c_void_p * max(1, len(self._parameters))
        self._outputs = ctypes.c_void_p * max(1, len(self._results))

    @property
    def parameter_shapes(self) -> Sequence[Shape]:
        return self._parameters

    @property
    def result_shapes(self) -> Sequence[Shape]:
        return self._results

    def call(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        results: list[DeviceBuffer] = [
            arguments[self._donated[k]] if k in self._donated else result_maker(shape)()
            for k, shape in enumerate(self._results)
        ]
        temporary = allocate(self._temporary_bytes)
        code = self._library.run(  # ctypes releases the GIL: other threads of Python go on
            self._arguments(*[a.address for a in arguments]),
            self._outputs(*[r.address for r in results]),
            temporary.address,
            None,
        )
        if code:
            raise ExecutionError(f"{self.module.name}: the compiled function returned {code}")
        return results

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        given = set(self._donated.values())
        buffers: list[DeviceBuffer] = [
            HostBuffer(array.copy() if k in given else array, shape)
            for k, (array, shape) in enumerate(zip(checked(self, arguments), self._parameters, strict=True))
        ]
        return [np.asarray(result) for result in self.call(buffers)]

    def kernels(self) -> KernelTexts:
        return KernelTexts({f"{self.module.name}.c": self._text})

    def memory_analysis(self) -> MemoryAnalysis:
        report = self._assignment.report()
        return MemoryAnalysis(
            argument_size_in_bytes=sum(s.byte_size for s in self._parameters),
            output_size_in_bytes=sum(s.byte_size for s in self._results),
            alias_size_in_bytes=sum(self._results[k].byte_size for k in self._donated),
            temp_size_in_bytes=self._temporary_bytes,
            constant_size_in_bytes=self._assignment.total_size(AllocationKind.CONSTANT),
            generated_code_size_in_bytes=self._library.code_bytes,
            text=report.to_text(),
            report=report,
        )

    def passes(self) -> PassRecords:
        return PassRecords(self._records)

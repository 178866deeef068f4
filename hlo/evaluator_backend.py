"""The evaluator as a backend: NumPy runs modules op by op. Slow and simple: other backends are compared with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .analyses.cost import CostEstimate, cost_analysis
from .backend import Compiler, DeviceBuffer, Executable, MemoryAnalysis, NDArray
from .evaluator import evaluate
from .evaluator.custom_call import BoundCalls, binding, bound_call
from .host_buffers import HostBuffer
from .ir import HloModule
from .kernel_texts import KernelTexts
from .opcode import Opcode
from .passes.manager import Pipeline
from .passes.partitioning import Partition
from .passes.record import PassRecords
from .passes.stages import Stages
from .shape import Shape
from .support.loop_progress import guarded
from .target import Target
from .targets import target_named


class EvaluatorExecutable(Executable):
    """A module as it was given: no passes run, nothing is compiled."""

    def __init__(self, module: HloModule, bound: BoundCalls | None = None) -> None:
        self.module, self._bound = module, {} if bound is None else bound
        # NumPy's arrays are dense and row-major for all layouts of the module.
        self._parameters = tuple(s.with_default_layout() for p in module.entry.parameters for s in p.shape.leaves())
        self._results = tuple(s.with_default_layout() for s in module.entry.root.shape.leaves())

    @property
    def parameter_shapes(self) -> Sequence[Shape]:
        return self._parameters

    @property
    def result_shapes(self) -> Sequence[Shape]:
        return self._results

    def call(self, arguments: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        arrays = [a.__array__() for a in arguments]
        return [HostBuffer(r, s) for r, s in zip(self.execute(arrays), self._results, strict=True)]

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        with binding(self._bound):
            results = guarded(evaluate)(self.module, *arguments)
        # The evaluator's results may be views of arguments or of each other; the caller must get separate arrays.
        return [np.array(r, order="C") for r in results]

    def kernels(self) -> KernelTexts:
        return KernelTexts()

    def memory_analysis(self) -> MemoryAnalysis:
        inputs = sum(s.byte_size for s in self._parameters)
        outputs = sum(s.byte_size for s in self._results)
        text = f"evaluated op by op: {inputs} bytes of arguments, {outputs} bytes of results, NumPy holds the rest"
        return MemoryAnalysis(inputs, outputs, 0, 0, 0, 0, text)

    def passes(self) -> PassRecords:
        return PassRecords()

    def stages(self) -> Stages:
        return Stages(self.module, (), (), ())

    def cost_analysis(self) -> CostEstimate:
        """See `analyses.cost`."""
        return cost_analysis(self.module)


class EvaluatorCompiler(Compiler):
    """`hloom.config.update("hloom_backend", "evaluator")` selects it."""

    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        """No passes: modules are evaluated as they are given. (One of whole arrays for several devices is partitioned,
        when it is compiled.)"""
        return Pipeline(target_named(target).name, ())

    def compile(self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()) -> Executable:
        """The same for every target: layouts do not change the results of a module."""
        target_named(target)  # an unknown target is refused here too
        bound: BoundCalls = {}
        for instruction in module.instructions():
            if instruction.opcode is Opcode.CUSTOM_CALL:  # unknown targets are refused before anything runs
                bound_call(bound, instruction.attributes, [o.shape for o in instruction.operands], instruction.shape)
        return EvaluatorExecutable(Partition()(module), bound)

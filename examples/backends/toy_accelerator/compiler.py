"""The passes, buffers, and the executable. The device is opened when the backend is first used."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from hloom.hlo import HloInstruction, HloModule, Target, UnsupportedError
from hloom.hlo.backend import Compiler, MemoryAnalysis
from hloom.hlo.buffers.assignment import BufferAssignment, assign_buffers
from hloom.hlo.entry_layouts import with_row_major_entry
from hloom.hlo.kernel_texts import KernelTexts
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops import Trait, has_trait
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.passes.fuse.flatten_call_graph import FlattenCallGraph
from hloom.hlo.passes.fuse.memory_scheduler import MemoryScheduler
from hloom.hlo.passes.layout.layout_erasure import LayoutErasure
from hloom.hlo.passes.manager import FixedPoint, Pipeline
from hloom.hlo.passes.record import PassRecord, PassRecords
from hloom.hlo.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from hloom.hlo.passes.simplify.call_inliner import CallInliner
from hloom.hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination
from hloom.hlo.passes.simplify.constant_folding import ConstantFolding
from hloom.hlo.passes.simplify.control_flow_simplifier import ControlFlowSimplifier
from hloom.hlo.passes.simplify.dead_code_elimination import DeadCodeElimination
from hloom.hlo.remote import RemoteExecutable, TransferManager
from hloom.hlo.targets import target_named

from . import lowering_indexing, lowering_reductions
from .device import ToyDevice
from .expansions import TOY_EXPANSIONS
from .fusion import FuseElementwise
from .lowering import Lowering

RULES = (lowering_indexing, lowering_reductions)
"""The files that add rules to LOWER."""


def can_share(instruction: HloInstruction, operand: int, output: int) -> bool:
    """Results that may be written over an operand: elementwise ones, since each piece is read before it is written, and
    updates of a part."""
    if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return operand == 0
    elementwise = has_trait(instruction.opcode, Trait.ELEMENTWISE) or instruction.opcode is Opcode.FUSION
    return elementwise and instruction.operands[operand].shape.dimensions == instruction.shape.dimensions


class ToyExecutable(RemoteExecutable):
    """A program for the device. Its one kernel is the program."""

    def __init__(
        self, module: HloModule, transfers: TransferManager, assignment: BufferAssignment,
        records: Sequence[PassRecord],
    ) -> None:  # fmt: skip
        started = time.perf_counter()
        lowering = Lowering(assignment)
        aliases = {k: place.allocation.index for k, place in enumerate(assignment.outputs)
                   if place.allocation.kind.value == "parameter"}  # fmt: skip
        super().__init__(module, transfers, lowering.program, lowering.assembler.scratch_bytes,
                         bytes(lowering.assembler.constants), aliases)  # fmt: skip
        count = sum(1 for _ in module.instructions())
        spent = (time.perf_counter() - started) * 1e3
        self._records = (*records, PassRecord("lowering", spent, count, count, False))
        self._assignment = assignment

    def kernels(self) -> Mapping[str, str]:
        return KernelTexts({self.module.name: str(self.program)})

    def memory_analysis(self) -> MemoryAnalysis:
        report = self._assignment.report()
        return MemoryAnalysis(
            argument_size_in_bytes=sum(s.byte_size for s in self.parameter_shapes),
            output_size_in_bytes=sum(s.byte_size for s in self.result_shapes),
            alias_size_in_bytes=sum(self.result_shapes[k].byte_size for k in self._aliases),
            temp_size_in_bytes=self.scratch_bytes,
            constant_size_in_bytes=self._constants.nbytes,
            generated_code_size_in_bytes=16 * len(self.program.commands),
            text=report.to_text(),
            report=report,
        )

    def passes(self) -> PassRecords:
        return PassRecords(self._records)


class ToyCompiler(Compiler):
    """`hloom.config.update("hloom_backend", "toy")` selects it."""

    def __init__(self, device: ToyDevice | None = None) -> None:
        """`device`: None: one with as much memory as the environment's TOY_MEMORY_MIB says, or 256 MiB."""
        self.device = device or ToyDevice(int(os.environ.get("TOY_MEMORY_MIB", "256")) << 20)
        self._transfers = TransferManager(self.device)

    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        simplify = FixedPoint(
            (
                AlgebraicSimplifier(),
                ConstantFolding(),
                CommonSubexpressionElimination(),
                ControlFlowSimplifier(),
                DeadCodeElimination(),
            )
        )
        return Pipeline(
            target_named(target).name,
            (
                CallInliner(),  # all passes below see plain operations
                LayoutErasure(),  # arrays are row-major from here on
                DeadCodeElimination(),
                Expand(TOY_EXPANSIONS),  # to ops that have a rule in LOWER
                simplify,
                FuseElementwise(),  # after simplification, which knows no fusions
                FlattenCallGraph(),  # each loop body gets one caller: buffers are assigned once for each computation
                MemoryScheduler(),
            ),
        )

    def compile(
        self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()
    ) -> ToyExecutable:
        if module.replica_count * module.num_partitions > 1:
            raise UnsupportedError(f"module {module.name} is for several devices; there is one toy accelerator")
        optimized, records = self.pipeline(target).run(with_row_major_entry(module))
        return ToyExecutable(optimized, self._transfers, assign_buffers(optimized, can_share), records)


"""Rows of collectives: calls into Python, in which the device that runs the program exchanges data with the others.

The thread knows which device that is (`hlo/collectives`). Data of other devices are read in their arenas, without a
copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.collectives.collective import Collective
from ...hlo.collectives.communicator import current_communicator
from ...hlo.evaluator.collective import combination
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.collective import COLLECTIVES
from .host import NDArray, host_row
from .table import LoweringContext, register


@register(*sorted(COLLECTIVES, key=lambda opcode: opcode.value), how="Python: devices exchange blocks of bytes")
def _collective(context: LoweringContext, instruction: HloInstruction) -> None:
    attributes = instruction.attributes
    combine = None if attributes.to_apply is None else combination(attributes.to_apply)
    shapes = [o.shape for o in instruction.operands]
    collective = Collective(instruction.opcode, attributes, shapes, combine, instruction.name)

    def together(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        collective(current_communicator(), operands, results)

    host_row(context, instruction, together, repeatable=False)  # the other devices would not join again


@register(Opcode.REPLICA_ID, how="a copy from the device's own numbers")
def _replica_id(context: LoweringContext, instruction: HloInstruction) -> None:
    context.builder.copy(context.results(instruction)[0], context.device_word(0), 4)


@register(Opcode.PARTITION_ID, how="a copy from the device's own numbers")
def _partition_id(context: LoweringContext, instruction: HloInstruction) -> None:
    context.builder.copy(context.results(instruction)[0], context.device_word(1), 4)

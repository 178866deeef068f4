"""The row that reads and advances the process's random state.

It is a Python call, because the state is a Python object that all backends share; the object's lock makes it safe for
executions that run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.random_state import RANDOM_STATE
from .host import NDArray, host_row
from .table import LoweringContext, register


@register(Opcode.RNG_GET_AND_UPDATE_STATE, how="Python: advances the process's state")
def _state(context: LoweringContext, instruction: HloInstruction) -> None:
    delta = instruction.attributes.delta

    def read(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        before = RANDOM_STATE.advance(delta)
        results[0][:] = [before & (2**64 - 1), before >> 64]

    host_row(context, instruction, read)

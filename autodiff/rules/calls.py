"""The transpose of a call: by the rule of its primitive, or of its meaning.

Forward rules of calls are in the primitives: `JVPTrace.call_rule` and `LinearizeTrace.call_rule` use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import CallAttributes
from ...hlo.shape import Shape
from ...tracer.core import Call, Value, call_of
from ...tracer.traced import jit_call
from ..tangents import Operand
from ..transpose import transpose_call, transpose_flat
from .tables import BATCH, JVP, TRANSPOSE

for _table in (JVP, BATCH):
    _table.unsupported([Opcode.CALL], "a call is a use of a primitive, and traces ask the primitive")


@TRANSPOSE.register(Opcode.CALL)
def _call_transpose(
    cts: Sequence[Value | None], operands: Sequence[Operand], attributes: CallAttributes, shape: Shape
) -> Sequence[Value | None]:
    """By the transpose rule of the primitive that is called; without one, its meaning backwards."""
    call = call_of(attributes)
    if call.primitive.is_transparent:
        return transpose_flat(attributes.to_apply, operands, cts)
    return (call.primitive.transpose or transpose_of_meaning)(call, cts, operands)


def transpose_of_meaning(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    """The transpose rule of a primitive that has none: its meaning backwards, which remains a call."""
    return transpose_call(call, cts, operands, lambda back: jit_call(back, call.label))

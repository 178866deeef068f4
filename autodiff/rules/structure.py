"""Ops that only give a program its structure have no derivative."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.opcode import Opcode
from ...hlo.ops.dynamic_size import DimensionAttributes
from ...hlo.shape import Shape
from ...tracer.core import Value, bind
from ..batches import Axis
from .linear import linear
from .tables import BATCH, JVP, TRANSPOSE, zero_derivative

_O = Opcode

zero_derivative(_O.CONSTANT, _O.GET_DIMENSION_SIZE)
linear(_O.OPT_BARRIER, symmetric=True)
for _table in (JVP, TRANSPOSE, BATCH):
    _table.unsupported([_O.PARAMETER], "the caller's values take its place before any rule is asked")
    _table.unsupported([_O.TUPLE, _O.GET_TUPLE_ELEMENT], "traces see flat lists of values, never tuples")
    _table.unsupported([_O.FUSION], "passes make fusions, after all transformations")


@BATCH.register(_O.GET_DIMENSION_SIZE)
def _size_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: DimensionAttributes, shape: Shape
) -> tuple[Value, bool]:
    """All elements of a batch have one size."""
    return bind(_O.GET_DIMENSION_SIZE, operands, DimensionAttributes(attributes.dimension + 1)), False

"""Derivatives of ops that other ops express: batch normalisation, ragged-dot, scaled-dot, map. They are differentiated
as these, by the same expansions that the backends use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.ir import Attributes
from ...hlo.opcode import Opcode
from ...hlo.passes.expand.dot import ragged_dot, scaled_dot
from ...hlo.passes.expand.map import mapped
from ...hlo.passes.expand.normalization import batch_norm_grad, batch_norm_inference, batch_norm_training
from ...hlo.shape import Shape
from ...tracer.core import Value
from ..jvp import jvp_flat
from ..tangents import Tangent
from .computations import Expansion, in_other_ops, run_expanded
from .tables import JVP

_O = Opcode

EXPANDED: dict[Opcode, Expansion] = {
    _O.BATCH_NORM_GRAD: batch_norm_grad,
    _O.BATCH_NORM_INFERENCE: batch_norm_inference,
    _O.BATCH_NORM_TRAINING: batch_norm_training,
    _O.MAP: mapped,
    _O.RAGGED_DOT: ragged_dot,
    _O.SCALED_DOT: scaled_dot,
}


def _register_expanded(opcode: Opcode, expand: Expansion) -> None:
    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
        def run(values: list[Value]) -> list[Value]:
            return run_expanded(expand, opcode, values, attributes, shape)

        results, moved = jvp_flat(run, primals, tangents)
        return (results, moved) if shape.is_tuple else (results[0], moved[0])

    JVP[opcode] = jvp
    in_other_ops(opcode, "it is differentiated as the ops that it stands for")


for _opcode, _expand in EXPANDED.items():
    _register_expanded(_opcode, _expand)

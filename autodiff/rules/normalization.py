"""Derivatives of ops that other ops express: batch normalisation, ragged-dot, scaled-dot, map. They are differentiated
as these, by the same expansions that the backends use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.ir import Attributes
from ...hlo.opcode import Opcode
from ...hlo.ops.normalization import BatchNormAttributes
from ...hlo.passes.expand.dot import ragged_dot, scaled_dot
from ...hlo.passes.expand.map import mapped
from ...hlo.passes.expand.normalization import batch_norm_grad, batch_norm_inference, batch_norm_training
from ...hlo.shape import Shape
from ...tracer.core import Value, bind, bind_multi
from ..batches import Axis, all_with_batch
from ..batching import batch_flat
from ..jvp import jvp_flat
from ..tangents import Tangent
from .computations import Expansion, in_other_ops, merge, move, run_expanded, split
from .tables import BATCH, JVP

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
        """The derivative of the simpler operations that the operation stands for."""
        def run(values: list[Value]) -> list[Value]:
            return run_expanded(expand, opcode, values, attributes, shape)

        results, moved = jvp_flat(run, primals, tangents)
        return (results, moved) if shape.is_tuple else (results[0], moved[0])

    def batch(
        axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Any, shape: Shape
    ) -> tuple[Any, Any]:
        def run(values: list[Value]) -> list[Value]:
            return run_expanded(expand, opcode, values, attributes, shape)

        results, mask = batch_flat(run, axis, operands, batched)
        return (results, mask) if shape.is_tuple else (results[0], mask[0])

    JVP[opcode] = jvp
    if opcode in (_O.RAGGED_DOT, _O.SCALED_DOT):
        BATCH[opcode] = batch
    in_other_ops(opcode, "it is differentiated as the ops that it stands for")


for _opcode, _expand in EXPANDED.items():
    _register_expanded(_opcode, _expand)


def _register_batch_norm(opcode: Opcode) -> None:
    def batch(
        axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: BatchNormAttributes, shape: Shape
    ) -> tuple[Any, Any]:
        """Features do not depend on each other: the features of all elements become the features of one array."""
        array = shape.elements[0] if shape.is_tuple else shape

        def feature(rank: int) -> int:
            return attributes.feature_index if rank == array.rank else 0

        def with_all_features(x: Value) -> Value:
            d = feature(x.aval.ndim - 1)
            return merge(move(x, 0, d), d)

        def apart(x: Value, part: Shape) -> Value:
            d = feature(part.rank)
            return move(split(x, d, axis.size, part.dimensions[d]), d, 0)

        given = [with_all_features(x) for x in all_with_batch(axis, operands, batched)]
        if not shape.is_tuple:
            return apart(bind(opcode, given, attributes), shape), True
        results = bind_multi(opcode, given, attributes)
        return [apart(r, part) for r, part in zip(results, shape.elements, strict=True)], [True] * len(results)

    BATCH[opcode] = batch


for _opcode in (_O.BATCH_NORM_TRAINING, _O.BATCH_NORM_INFERENCE, _O.BATCH_NORM_GRAD):
    _register_batch_norm(_opcode)

"""Batch normalisation: training, inference, gradient.

Source: XLA's ShapeInference::InferBatchNormTrainingShape and its sisters; the sections "BatchNormTraining",
"BatchNormInference" and "BatchNormGrad" of the operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import FLOAT, INTEGER
from .checks import FLOATS, array_of, fail, in_default_layout, names
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class BatchNormAttributes(Attributes):
    epsilon: Annotated[float, Attr(FLOAT)]
    feature_index: Annotated[int, Attr(INTEGER, dims=Dims(names=Of.OPERAND_0))]


_FAMILY = "normalization"
_O = Opcode


def _feature_shape(opcode: Opcode, operands: Sequence[Shape], attributes: BatchNormAttributes, vectors: int) -> Shape:
    """Check the operand and the `vectors` operands after it; return the type of an array with one value per feature."""
    operand = operands[0]
    if operand.element_type not in FLOATS:
        fail(opcode, operands, f"it accepts {names(FLOATS)}", 1)
    if not 0 <= attributes.feature_index < operand.rank:
        fail(opcode, operands, f"feature_index {attributes.feature_index} must be in [0, {operand.rank})", 2)
    feature = array_of(operand.element, (operand.dimensions[attributes.feature_index],))
    if not all(o.compatible(feature) for o in operands[1 : 1 + vectors]):
        fail(opcode, operands, f"operands 1 to {vectors} must be {feature}", 3)
    return feature


def _training_rule(operands: Sequence[Shape], attributes: BatchNormAttributes, declared: Shape | None) -> Shape:
    """Operands: array, scale, offset. Result: (normalised, mean, variance).

    c1: the array's element type is a float; c2: feature_index is a dimension of the array; c3: scale and offset have
    one value of the array's element type for each feature.
    """
    feature = _feature_shape(_O.BATCH_NORM_TRAINING, operands, attributes, 2)
    return Shape.tuple([in_default_layout(operands[0]), feature, feature])


def _inference_rule(operands: Sequence[Shape], attributes: BatchNormAttributes, declared: Shape | None) -> Shape:
    """Operands: array, scale, offset, mean, variance. Result: normalised. c1, c2, c3: as for training."""
    _feature_shape(_O.BATCH_NORM_INFERENCE, operands, attributes, 4)
    return in_default_layout(operands[0])


def _grad_rule(operands: Sequence[Shape], attributes: BatchNormAttributes, declared: Shape | None) -> Shape:
    """Operands: array, scale, mean, variance, gradient of the result. Result: gradients of array, scale and offset.

    c1, c2, c3: as for training; c4: the gradient has the array's type.
    """
    feature = _feature_shape(_O.BATCH_NORM_GRAD, operands, attributes, 3)
    if not operands[4].compatible(operands[0]):
        fail(_O.BATCH_NORM_GRAD, operands, "the gradient must have the array's type", 4)
    return Shape.tuple([in_default_layout(operands[0]), feature, feature])


SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.BATCH_NORM_TRAINING, _FAMILY, 3, BatchNormAttributes, _training_rule, Trait.EXPENSIVE),
    OpSpec(_O.BATCH_NORM_INFERENCE, _FAMILY, 5, BatchNormAttributes, _inference_rule, Trait.EXPENSIVE),
    OpSpec(_O.BATCH_NORM_GRAD, _FAMILY, 5, BatchNormAttributes, _grad_rule, Trait.EXPENSIVE),
)

"""Expansion of batch normalisation into sums and arithmetic, which fuse. Source: XLA's BatchNormExpander.

Narrow floats are computed in f32 and rounded at the end.
"""

from __future__ import annotations

import math

from ...builder import make_constant, make_instruction, make_tuple
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ..patterns import broadcast, convert
from ..simplify.reducers import binary_reducer

_O = Opcode


def _op(opcode: Opcode, *operands: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, operands)


class _Batch:
    """Builds instructions for one batch normalisation."""

    def __init__(self, instruction: HloInstruction) -> None:
        operand = instruction.operands[0]
        self.result = operand.shape.element
        self.computed = ElementType.F64 if self.result is ElementType.F64 else ElementType.F32
        self.feature_index = instruction.attributes.feature_index
        self.epsilon = instruction.attributes.epsilon
        self.others = tuple(d for d in range(operand.shape.rank) if d != self.feature_index)
        self.count = math.prod(operand.shape.dimensions[d] for d in self.others)
        self.full = Shape.array(self.computed, operand.shape.dimensions)

    def wide(self, x: HloInstruction) -> HloInstruction:
        return convert(x, self.computed)

    def number(self, value: float, like: HloInstruction) -> HloInstruction:
        return broadcast(make_constant(self.computed.dtype.type(value)), like.shape, ())

    def spread(self, vector: HloInstruction) -> HloInstruction:
        """A vector with one value for each feature, broadcast to the array's shape."""
        return broadcast(vector, self.full, (self.feature_index,))

    def sum(self, x: HloInstruction) -> HloInstruction:
        zero = make_constant(self.computed.dtype.type(0))
        return make_instruction(
            _O.REDUCE, (x, zero), ReduceAttributes(self.others, binary_reducer(_O.ADD, self.computed))
        )

    def mean(self, x: HloInstruction) -> HloInstruction:
        total = self.sum(x)
        return _op(_O.DIVIDE, total, self.number(self.count, total))

    def plus_epsilon(self, variance: HloInstruction) -> HloInstruction:
        return _op(_O.ADD, variance, self.number(self.epsilon, variance))

    def normalised(
        self, x: HloInstruction, scale: HloInstruction, offset: HloInstruction, mean: HloInstruction,
        variance: HloInstruction,
    ) -> HloInstruction:  # fmt: skip
        """(x - mean) * rsqrt(variance + epsilon) * scale + offset"""
        factor = self.spread(_op(_O.RSQRT, self.plus_epsilon(variance)))
        normal = _op(_O.MULTIPLY, _op(_O.SUBTRACT, x, self.spread(mean)), factor)
        scaled = _op(_O.ADD, _op(_O.MULTIPLY, normal, self.spread(scale)), self.spread(offset))
        return convert(scaled, self.result)


def batch_norm_training(instruction: HloInstruction) -> HloInstruction:
    """The variance is the mean of squares minus the squared mean: one pass over the array computes both."""
    batch = _Batch(instruction)
    x, scale, offset = map(batch.wide, instruction.operands)
    mean = batch.mean(x)
    variance = _op(_O.SUBTRACT, batch.mean(_op(_O.MULTIPLY, x, x)), _op(_O.MULTIPLY, mean, mean))
    normal = batch.normalised(x, scale, offset, mean, variance)
    return make_tuple([normal, convert(mean, batch.result), convert(variance, batch.result)])


def batch_norm_inference(instruction: HloInstruction) -> HloInstruction:
    """With the given mean and variance."""
    batch = _Batch(instruction)
    x, scale, offset, mean, variance = map(batch.wide, instruction.operands)
    return batch.normalised(x, scale, offset, mean, variance)


def batch_norm_grad(instruction: HloInstruction) -> HloInstruction:
    """With g the gradient, c = x - mean, v = variance + epsilon, n elements for each feature, the gradients are: scale
    sum(g c) / sqrt(v); offset sum(g); x scale / sqrt(v) / n * (n g - sum(g) - c sum(g c) / v)."""
    batch = _Batch(instruction)
    x, scale, mean, variance, g = map(batch.wide, instruction.operands)
    spread = batch.plus_epsilon(variance)
    rsqrt = _op(_O.RSQRT, spread)
    centred = _op(_O.SUBTRACT, x, batch.spread(mean))
    total, projected = batch.sum(g), batch.sum(_op(_O.MULTIPLY, g, centred))
    direct = _op(_O.SUBTRACT, _op(_O.MULTIPLY, g, batch.number(batch.count, g)), batch.spread(total))
    through_variance = _op(_O.MULTIPLY, centred, batch.spread(_op(_O.DIVIDE, projected, spread)))
    factor = _op(_O.DIVIDE, _op(_O.MULTIPLY, scale, rsqrt), batch.number(batch.count, scale))
    of_x = _op(_O.MULTIPLY, batch.spread(factor), _op(_O.SUBTRACT, direct, through_variance))
    of_scale = _op(_O.MULTIPLY, projected, rsqrt)
    return make_tuple([convert(r, batch.result) for r in (of_x, of_scale, total)])

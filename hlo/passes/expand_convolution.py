"""Expansion of convolution: into one of two canonical forms, for which the backend has rows.

    channels first:  input [b, f, s...], kernel [o, i, s...], result [b, f, s...]
    channels last:   input [b, s..., f], kernel [s..., i, o], result [b, s..., f]

In both, the operands have the result's element type, there are no batch groups, and the window is not reversed. What
this adds are transposes, reshapes and conversions, which fuse with their neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..attributes import (
    BroadcastAttributes,
    ConvolutionAttributes,
    ConvolutionDimensionNumbers,
    ReverseAttributes,
    TransposeAttributes,
)
from ..builder import make_constant, make_instruction
from ..element_type import ElementType
from ..ir import HloInstruction
from ..opcode import Opcode
from ..shape import Shape

FEW_PLACES = 64
"""With fewer places than this an image is a narrow matrix: with channels last, all images together are one."""

_HALF = (ElementType.F16, ElementType.BF16)

Convert = Callable[[HloInstruction, ElementType], HloInstruction]


def canonical_numbers(spatial: int, channels_last: bool) -> ConvolutionDimensionNumbers:
    """The dimension numbers of a canonical form."""
    if channels_last:
        array = tuple(range(1, spatial + 1))
        return ConvolutionDimensionNumbers(
            0, spatial + 1, array, spatial, spatial + 1, tuple(range(spatial)), 0, spatial + 1, array
        )
    rest = tuple(range(2, spatial + 2))
    return ConvolutionDimensionNumbers(0, 1, rest, 1, 0, rest, 0, 1, rest)


def is_channels_last(attributes: ConvolutionAttributes) -> bool:
    """Which of the two forms a canonical convolution has; without spatial dimensions it is channels first."""
    return attributes.dimension_numbers != canonical_numbers(len(attributes.window), False)


def convolution_of_nothing(convolution: HloInstruction) -> HloInstruction | None:
    """Zeros, where there is nothing to add up."""
    if convolution.shape.num_elements and all(o.shape.num_elements for o in convolution.operands):
        return None
    zero = make_constant(np.zeros((), convolution.shape.element.dtype))
    return make_instruction(Opcode.BROADCAST, (zero,), BroadcastAttributes(()), convolution.shape)


def convolution_in_one_type(convert: Convert) -> Callable[[HloInstruction], HloInstruction | None]:
    """The rule: operands in the type in which the products are added up, the result's; f32 for f16 and bf16."""

    def rule(convolution: HloInstruction) -> HloInstruction | None:
        result = convolution.shape.element
        computed = ElementType.F32 if result in _HALF else result
        if all(o.shape.element is computed for o in (*convolution.operands, convolution)):
            return None
        operands = [convert(o, computed) for o in convolution.operands]
        shape = Shape.array(computed, convolution.shape.dimensions)
        return convert(make_instruction(Opcode.CONVOLUTION, operands, convolution.attributes, shape), result)

    return rule


def batch_groups_as_feature_groups(convolution: HloInstruction) -> HloInstruction | None:
    """Each group of the batch becomes a group of features: input [g * b, f] is seen as [b, g * f]."""
    attributes: ConvolutionAttributes = convolution.attributes
    groups = attributes.batch_group_count
    if groups == 1:
        return None
    array, kernel = convolution.operands
    batch, feature = attributes.dimension_numbers.input_batch, attributes.dimension_numbers.input_feature
    sizes = list(array.shape.dimensions)
    split = [*sizes[:batch], groups, sizes[batch] // groups, *sizes[batch + 1 :]]
    viewed = _reshaped(array, split)
    order = [d for d in range(len(split)) if d != batch]
    order.insert(order.index(feature + (feature > batch)), batch)
    moved = _transposed(viewed, order)
    sizes[batch] //= groups
    sizes[feature] *= groups
    merged = _reshaped(moved, sizes)
    new = replace(attributes, batch_group_count=1, feature_group_count=groups)
    return make_instruction(Opcode.CONVOLUTION, (merged, kernel), new, convolution.shape)


def reversed_window(convolution: HloInstruction) -> HloInstruction | None:
    """A reversed window is a reversed kernel."""
    attributes: ConvolutionAttributes = convolution.attributes
    if not any(part.reversed for part in attributes.window):
        return None
    array, kernel = convolution.operands
    spatial = attributes.dimension_numbers.kernel_spatial
    dimensions = tuple(d for d, part in zip(spatial, attributes.window, strict=True) if part.reversed)
    turned = make_instruction(Opcode.REVERSE, (kernel,), ReverseAttributes(dimensions))
    window = tuple(replace(part, reversed=False) for part in attributes.window)
    new = replace(attributes, window=window)
    return make_instruction(Opcode.CONVOLUTION, (array, turned), new, convolution.shape)


def canonical_dimensions(convolution: HloInstruction) -> HloInstruction | None:
    """Transposes around a convolution, until its dimensions are in the order of a canonical form."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, spatial = attributes.dimension_numbers, len(attributes.window)
    wanted = canonical_numbers(spatial, _wants_channels_last(convolution))
    if wanted == numbers:
        return None
    array, kernel = convolution.operands
    array = _transposed(array, _moved(_input(numbers), _input(wanted)))
    kernel = _transposed(kernel, _moved(_kernel(numbers), _kernel(wanted)))
    own = _moved(_result(numbers), _result(wanted))
    shape = Shape.array(convolution.shape.element, [convolution.shape.dimensions[d] for d in own])
    new = replace(attributes, dimension_numbers=wanted)
    result = make_instruction(Opcode.CONVOLUTION, (array, kernel), new, shape)
    return _transposed(result, _moved(_result(wanted), _result(numbers)))


def _wants_channels_last(convolution: HloInstruction) -> bool:
    """As the input lies; but an image of few places is no good matrix, and what BLAS does not multiply goes by rows."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers = attributes.dimension_numbers
    sizes = convolution.shape.dimensions
    lies_last = bool(numbers.input_spatial) and numbers.input_feature == len(sizes) - 1
    groups, kernel = attributes.feature_group_count, convolution.operands[1].shape.dimensions
    depthwise = groups > 1 and kernel[numbers.kernel_output_feature] == groups
    if depthwise and kernel[numbers.kernel_input_feature] == 1:
        return lies_last
    if not convolution.shape.element.is_inexact:
        return False
    places = math.prod(sizes[d] for d in numbers.output_spatial)
    few = places < FEW_PLACES and sizes[numbers.output_batch] > 1 and bool(numbers.input_spatial)
    return lies_last or few


def _input(numbers: ConvolutionDimensionNumbers) -> tuple[int, ...]:
    return (numbers.input_batch, numbers.input_feature, *numbers.input_spatial)


def _kernel(numbers: ConvolutionDimensionNumbers) -> tuple[int, ...]:
    return (numbers.kernel_input_feature, numbers.kernel_output_feature, *numbers.kernel_spatial)


def _result(numbers: ConvolutionDimensionNumbers) -> tuple[int, ...]:
    return (numbers.output_batch, numbers.output_feature, *numbers.output_spatial)


def _moved(source: Sequence[int], target: Sequence[int]) -> list[int]:
    """The permutation that takes dimensions in the places `source` to the places `target`."""
    order = [0] * len(source)
    for old, new in zip(source, target, strict=True):
        order[new] = old
    return order


def _transposed(operand: HloInstruction, order: Sequence[int]) -> HloInstruction:
    if list(order) == list(range(len(order))):
        return operand
    return make_instruction(Opcode.TRANSPOSE, (operand,), TransposeAttributes(tuple(order)))


def _reshaped(operand: HloInstruction, sizes: Sequence[int]) -> HloInstruction:
    return make_instruction(Opcode.RESHAPE, (operand,), shape=Shape.array(operand.shape.element, sizes))

"""Expansion of convolution into one of the canonical forms, for which this backend has rows.

It adds transposes, which fuse with their neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...hlo.builder import make_instruction
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.convolution import ConvolutionAttributes
from ...hlo.passes.expand.convolution import canonical_numbers
from ...hlo.passes.patterns import transpose
from ...hlo.shape import Shape
from ...hlo.window import ConvolutionDimensionNumbers

FEW_PLACES = 64
"""An image with fewer positions of the window is a narrow matrix. With channels last all images together are one
matrix."""


def canonical_dimensions(convolution: HloInstruction) -> HloInstruction | None:
    """Transposes around a convolution, until its dimensions are in the order of a canonical form."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, spatial = attributes.dimension_numbers, len(attributes.window)
    wanted = canonical_numbers(spatial, _wants_channels_last(convolution))
    if wanted == numbers:
        return None
    array, kernel = convolution.operands
    array = transpose(array, _moved(_input(numbers), _input(wanted)))
    kernel = transpose(kernel, _moved(_kernel(numbers), _kernel(wanted)))
    own = _moved(_result(numbers), _result(wanted))
    shape = Shape.array(convolution.shape.element, [convolution.shape.dimensions[d] for d in own])
    new = replace(attributes, dimension_numbers=wanted)
    result = make_instruction(Opcode.CONVOLUTION, (array, kernel), new, shape)
    return transpose(result, _moved(_result(wanted), _result(numbers)))


def _wants_channels_last(convolution: HloInstruction) -> bool:
    """Follows the layout of the input. But few positions make a poor matrix, and BLAS does not take all element
    types."""
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
    """The permutation that moves the dimensions at `source` to `target`."""
    order = [0] * len(source)
    for old, new in zip(source, target, strict=True):
        order[new] = old
    return order

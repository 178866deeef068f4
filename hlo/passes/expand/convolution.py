"""Expansions of convolution. Afterwards its operands have the result's element type, there are no batch groups, the
window is not reversed, and the input has no holes, or very many.

They add transposes, reshapes and conversions, which fuse with their neighbours. A backend may also require one of two
canonical orders of dimensions, which the layout passes then keep:

    channels first:  input [b, f, s...], kernel [o, i, s...], result [b, f, s...]
    channels last:   input [b, s..., f], kernel [s..., i, o], result [b, s..., f]
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...builder import make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.convolution import ConvolutionAttributes
from ...ops.movement import ConcatenateAttributes, ReverseAttributes, SliceAttributes
from ...shape import Shape
from ...window import ConvolutionDimensionNumbers, WindowDimension
from ..patterns import convert, make_zeros, reshape, transpose
from .small_types import wider_type

MAX_PHASES = 8
"""Phases along one dimension: each is a separate convolution. With more holes the convolution stays as it is."""

_HALF = (ElementType.F16, ElementType.BF16)


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
    """True for channels last; a convolution without spatial dimensions is channels first."""
    return bool(attributes.window) and attributes.dimension_numbers.input_feature == len(attributes.window) + 1


def convolution_of_nothing(convolution: HloInstruction) -> HloInstruction | None:
    """Zeros if the sums have no terms."""
    if convolution.shape.num_elements and all(o.shape.num_elements for o in convolution.operands):
        return None
    return make_zeros(convolution.shape)


def convolution_in_one_type(convolution: HloInstruction) -> HloInstruction | None:
    """Operands in the type in which the products are summed: the result's type, but f32 for floats narrower than f32,
    and a byte for integers of less than a byte."""
    result = convolution.shape.element
    computed = result
    if result in _HALF or (result.is_small and result.is_floating):
        computed = ElementType.F32
    elif result.is_small:
        computed = wider_type(result)
    if all(o.shape.element is computed for o in (*convolution.operands, convolution)):
        return None
    operands = [convert(o, computed) for o in convolution.operands]
    shape = Shape.array(computed, convolution.shape.dimensions)
    return convert(make_instruction(Opcode.CONVOLUTION, operands, convolution.attributes, shape), result)


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
    viewed = reshape(array, split)
    order = [d for d in range(len(split)) if d != batch]
    order.insert(order.index(feature + (feature > batch)), batch)
    moved = transpose(viewed, order)
    sizes[batch] //= groups
    sizes[feature] *= groups
    merged = reshape(moved, sizes)
    new = replace(attributes, batch_group_count=1, feature_group_count=groups)
    return make_instruction(Opcode.CONVOLUTION, (merged, kernel), new, convolution.shape)


def reversed_window(convolution: HloInstruction) -> HloInstruction | None:
    """A reversed window becomes a reversed kernel."""
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


def phases_of_dilated_input(convolution: HloInstruction) -> HloInstruction | None:
    """A convolution over an input with holes (the gradient of a strided one) becomes one without holes for each phase.

    Along a dimension dilated by b, let n be b divided by its greatest common divisor with the stride. The results q * n
    + p of a phase p meet an element of the input with the same elements of the kernel: some first one and every m-th
    from there on, or none. Those are a convolution with a smaller stride and window dilation; the phases' results are
    interleaved.
    """
    attributes: ConvolutionAttributes = convolution.attributes
    for position, part in enumerate(attributes.window):
        if part.base_dilation > 1 and phases_of(part) <= MAX_PHASES and not part.reversed:
            return _in_phases(convolution, position)
    return None


def phases_of(part: WindowDimension) -> int:
    """After so many positions of a window, the same of its elements meet a hole again."""
    return part.base_dilation // math.gcd(part.base_dilation, part.stride)


def _in_phases(convolution: HloInstruction, position: int) -> HloInstruction:
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, part = attributes.dimension_numbers, attributes.window[position]
    array, kernel = convolution.operands
    number, target = phases_of(part), numbers.output_spatial[position]
    size = array.shape.dimensions[numbers.input_spatial[position]]
    sizes = convolution.shape.dimensions
    count = -(-sizes[target] // number)
    phase_sizes = [count if d == target else size for d, size in enumerate(sizes)]
    shape = Shape.array(convolution.shape.element, phase_sizes)
    holes = part.base_dilation
    stride = part.stride * number // holes
    step = holes // math.gcd(holes, part.window_dilation)
    dilation = part.window_dilation * step // holes
    phases = []
    for phase in range(number):
        cells = [phase * part.stride + k * part.window_dilation - part.padding_low for k in range(min(step, part.size))]
        first = next((k for k, cell in enumerate(cells) if cell % holes == 0), None)
        if first is None:
            phases.append(make_zeros(shape))
            continue
        taken = _every(kernel, numbers.kernel_spatial[position], first, step)
        taps = -(-(part.size - first) // step)
        low = -cells[first] // holes
        reach = (count - 1) * stride + (taps - 1) * dilation + 1
        window = list(attributes.window)
        window[position] = WindowDimension(taps, stride, low, reach - low - size, 1, dilation)
        new = replace(attributes, window=tuple(window))
        phases.append(make_instruction(Opcode.CONVOLUTION, (array, taken), new, shape))
    if number == 1:
        return phases[0]
    alone = [*phase_sizes[: target + 1], 1, *phase_sizes[target + 1 :]]
    turns = make_instruction(
        Opcode.CONCATENATE, [reshape(phase, alone) for phase in phases], ConcatenateAttributes(target + 1)
    )
    padded = [count * number if d == target else size for d, size in enumerate(sizes)]
    result = reshape(turns, padded)
    if count * number == sizes[target]:
        return result
    rank = len(sizes)
    return make_instruction(Opcode.SLICE, (result,), SliceAttributes((0,) * rank, tuple(sizes), (1,) * rank))


def _every(operand: HloInstruction, dimension: int, first: int, step: int) -> HloInstruction:
    """Every `step`-th element along a dimension, from `first` on."""
    sizes, rank = operand.shape.dimensions, operand.shape.rank
    starts, strides = [0] * rank, [1] * rank
    starts[dimension], strides[dimension] = first, step
    return make_instruction(Opcode.SLICE, (operand,), SliceAttributes(tuple(starts), sizes, tuple(strides)))

"""Expansions of convolution. Afterwards its operands have the result's element type, there are no batch groups, the
window is not reversed, and the input has no holes.

They add transposes, reshapes and conversions, which fuse with their neighbours. A backend may also require one of two
canonical orders of dimensions, which the layout passes then keep:

    channels first:  input [b, f, s...], kernel [o, i, s...], result [b, f, s...]
    channels last:   input [b, s..., f], kernel [s..., i, o], result [b, s..., f]
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from ...builder import make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.convolution import ConvolutionAttributes
from ...ops.movement import ConcatenateAttributes, PadAttributes, ReverseAttributes, SliceAttributes
from ...shape import Shape
from ...window import ConvolutionDimensionNumbers, WindowDimension
from ..patterns import convert, make_splat, make_zeros, reshape, transpose
from .small_types import wider_type

FEW_PHASES = 8
"""Phases along one dimension that are a convolution each. Compiled together they take as long, or longer: 1.3 times for
a kernel of 2 x 2 and every second cell."""

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
    """Operands in the type in which the products are summed: the result's type, but f32 for floats narrower than f32, a
    byte for integers of less than a byte, and s32 for pred: a sum is true if any of its terms is."""
    result = convolution.shape.element
    computed = result
    if result in _HALF or (result.is_small and result.is_floating):
        computed = ElementType.F32
    elif result.is_small:
        computed = wider_type(result)
    elif result is ElementType.PRED:
        computed = ElementType.S32
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
    """A convolution over an input with holes (the gradient of a strided one) becomes some without holes.

    Along a dimension dilated by b, let n be b divided by its greatest common divisor with the stride. The results q * n
    + p of a phase p meet an element of the input with the same elements of the kernel: some first one and every m-th
    from there on, or none. Those are a convolution with a smaller stride and window dilation. Of many phases, those
    that meet as many elements, from the same place on, are features of one convolution. The phases' results are
    interleaved.
    """
    attributes: ConvolutionAttributes = convolution.attributes
    for position, part in enumerate(attributes.window):
        if part.base_dilation > 1 and not part.reversed:
            return _in_phases(convolution, position)
    return None


def _in_phases(convolution: HloInstruction, position: int) -> HloInstruction:
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, part = attributes.dimension_numbers, attributes.window[position]
    holes, target = part.base_dilation, numbers.output_spatial[position]
    number = holes // math.gcd(holes, part.stride)
    sizes = convolution.shape.dimensions
    count = -(-sizes[target] // number)
    phase_sizes = [count if d == target else size for d, size in enumerate(sizes)]
    step = holes // math.gcd(holes, part.window_dilation)
    met: list[tuple[int, int, int] | None] = []
    """Of each phase: the first element of the kernel, how many there are, and where the input is."""
    for phase in range(number):
        cells = [phase * part.stride + k * part.window_dilation - part.padding_low for k in range(min(step, part.size))]
        first = next((k for k, cell in enumerate(cells) if cell % holes == 0), None)
        met.append(None if first is None else (first, -(-(part.size - first) // step), -cells[first] // holes))

    def likeness(phase: int) -> object:
        found = met[phase]
        return found if number <= FEW_PHASES or (part.stride, part.window_dilation) != (1, 1) else found and found[1:]

    parts = []
    for _, run in itertools.groupby(range(number), likeness):
        phases = [*run]
        alone = [*phase_sizes[: target + 1], len(phases), *phase_sizes[target + 1 :]]
        found = [meeting for phase in phases if (meeting := met[phase]) is not None]
        if not found:
            parts.append(make_zeros(Shape.array(convolution.shape.element, alone)))
            continue
        result = _of_phases(convolution, position, *found[-1], len(found), count)
        if number == 1:
            return result
        if len(found) == 1:
            parts.append(reshape(result, alone))
        else:
            parts.append(_turns(result, numbers.output_feature, target, len(found)))
    turns = parts[0]
    if len(parts) > 1:
        turns = make_instruction(Opcode.CONCATENATE, parts, ConcatenateAttributes(target + 1))
    padded = [count * number if d == target else size for d, size in enumerate(sizes)]
    result = reshape(turns, padded)
    if count * number == sizes[target]:
        return result
    rank = len(sizes)
    return make_instruction(Opcode.SLICE, (result,), SliceAttributes((0,) * rank, tuple(sizes), (1,) * rank))


def _of_phases(
    convolution: HloInstruction, position: int, first: int, taps: int, low: int, phases: int, count: int
) -> HloInstruction:
    """The results of some phases: of each feature, one after the other. `first`: where the last phase begins in the
    kernel; each one before it begins one element later."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, part = attributes.dimension_numbers, attributes.window[position]
    array, kernel = convolution.operands
    holes, along, made = part.base_dilation, numbers.kernel_spatial[position], numbers.kernel_output_feature
    step = holes // math.gcd(holes, part.window_dilation)
    stride = part.stride // math.gcd(holes, part.stride)
    dilation = part.window_dilation // math.gcd(holes, part.window_dilation)
    reach = (count - 1) * stride + (taps - 1) * dilation + 1
    size = array.shape.dimensions[numbers.input_spatial[position]]
    window = list(attributes.window)
    window[position] = WindowDimension(taps, stride, low, reach - low - size, 1, dilation)
    sizes = list(convolution.shape.dimensions)
    sizes[numbers.output_spatial[position]] = count
    if phases == 1:
        kernel = _every(kernel, along, first, step)
    else:
        given, rank = list(kernel.shape.dimensions), kernel.shape.rank
        lows, highs = ([0] * rank for _ in range(2))
        lows[along], highs[along] = -first, first + taps * step - given[along]
        zero = make_splat(0, Shape.array(kernel.shape.element))
        kernel = make_instruction(Opcode.PAD, (kernel, zero), PadAttributes(tuple(lows), tuple(highs), (0,) * rank))
        kernel = reshape(kernel, [*given[:along], taps, step, *given[along + 1 :]])
        limits = [*given[:along], taps, phases, *given[along + 1 :]]
        taken = SliceAttributes((0,) * (rank + 1), tuple(limits), (1,) * (rank + 1))
        kernel = make_instruction(Opcode.SLICE, (kernel,), taken)
        kernel = make_instruction(Opcode.REVERSE, (kernel,), ReverseAttributes((along + 1,)))
        kernel = _moved(kernel, along + 1, made)
        given[along], given[made] = taps, given[made] * phases
        kernel = reshape(kernel, given)
        sizes[numbers.output_feature] *= phases
    new = replace(attributes, window=tuple(window))
    return make_instruction(Opcode.CONVOLUTION, (array, kernel), new, Shape.array(convolution.shape.element, sizes))


def _moved(array: HloInstruction, dimension: int, after: int) -> HloInstruction:
    """The array with a dimension moved to the place after another one, in the numbers of the other dimensions."""
    order = [d for d in range(array.shape.rank) if d != dimension]
    order.insert(after + 1, dimension)
    return transpose(array, order)


def _turns(result: HloInstruction, feature: int, target: int, phases: int) -> HloInstruction:
    """The results of `_of_phases`, with the phases in a dimension after `target`."""
    sizes = result.shape.dimensions
    split = reshape(result, [*sizes[:feature], sizes[feature] // phases, phases, *sizes[feature + 1 :]])
    return _moved(split, feature + 1, target)


def _every(operand: HloInstruction, dimension: int, first: int, step: int) -> HloInstruction:
    """Every `step`-th element along a dimension, from `first` on."""
    sizes, rank = operand.shape.dimensions, operand.shape.rank
    starts, strides = [0] * rank, [1] * rank
    starts[dimension], strides[dimension] = first, step
    return make_instruction(Opcode.SLICE, (operand,), SliceAttributes(tuple(starts), sizes, tuple(strides)))

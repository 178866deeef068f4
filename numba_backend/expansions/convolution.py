"""Expand convolution into one of the canonical forms that this backend has rows for.

It adds transposes, which fuse with their neighbours. Two more forms are derivatives by the kernel. They sum over the
images and the positions of the window: a convolution with a window that is larger than its result.

    channels first:  input [f, b, s...], kernel [i, o, s...], result [f, b, s...]
    channels last:   input [f, s..., b], kernel [i, s..., o], result [s..., b, f]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...hlo.builder import make_instruction
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.convolution import ConvolutionAttributes
from ...hlo.ops.movement import SliceAttributes
from ...hlo.passes.expand.convolution import (
    batch_groups_as_feature_groups,
    canonical_numbers,
    convolution_in_one_type,
    reversed_window,
)
from ...hlo.passes.patterns import binary, convert, reshape, transpose, unary
from ...hlo.shape import Shape
from ...hlo.window import ConvolutionDimensionNumbers, WindowDimension, is_trivial
from ..emit.convolution import SUPPORTED
from ..emit.product import type_of_sums
from ..loops.lanes import WIDTHS

LEAST_GRADIENT = 1 << 15
"""Multiplications of a derivative that has a form of its own: native loops do not take these forms."""
SHORT_ROW, MANY_OUTPUTS = 256, 16
SOME_COLUMNS, MANY_ELEMENTS = 1.25, 128
"""With fewer positions, and at least so many outputs, channels last is faster for a derivative by the kernel. So it is
if whole rows of a tile are but so many times the outputs, which have so many elements each: 0.8 to 0.95."""
TILE_BYTES, SOME_WASTE, MOST_WASTE = 128, 1.1, 1.6
"""Channels first: what a row of a tile has usually, and how many times the results are few and too many to compute."""
MOVED, MOVED_WEIGHT = 10, 300
"""Bringing an element of an image or of the kernel into another order, in multiplications."""

FEW_OUTPUTS = 8
"""Channels last, outputs are along a vector: with fewer of them channels first is faster, up to 8 times."""
FEW_PLACES = 64
"""An image with fewer positions of the window is a narrow matrix. With channels last all images together are one
matrix."""


def canonical_dimensions(convolution: HloInstruction) -> HloInstruction | None:
    """Transposes around a convolution, until its dimensions are in the order of a canonical form."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, spatial = attributes.dimension_numbers, len(attributes.window)
    if wants_transposed_kernel(convolution):
        return None
    gradient = wanted_gradient(convolution)
    if gradient is None and _has_few_outputs(convolution) and _has_small_images(convolution):
        return _images_as_places(convolution)
    wanted = gradient or canonical_numbers(spatial, _wants_channels_last(convolution))
    element = convolution.shape.element if gradient is None else ElementType.F64
    if wanted == numbers and (gradient is None or is_gradient(convolution)):
        return None
    array, kernel = convolution.operands
    array = transpose(array, _moved(_input(numbers), _input(wanted)))
    kernel = transpose(kernel, _moved(_kernel(numbers), _kernel(wanted)))
    own = _moved(_result(numbers), _result(wanted))
    shape = Shape.array(element, [convolution.shape.dimensions[d] for d in own])
    new = replace(attributes, dimension_numbers=wanted)
    notes = () if gradient is None else _IN_F64
    result = make_instruction(Opcode.CONVOLUTION, (array, kernel), new, shape, annotations=notes)
    return convert(transpose(result, _moved(_result(wanted), _result(numbers))), convolution.shape.element)


def in_one_type(convolution: HloInstruction) -> HloInstruction | None:
    """Operands in the type of the result, but not where a derivative by the kernel is added up in f64."""
    return None if is_gradient(convolution) else convolution_in_one_type(convolution)


def _has_small_images(convolution: HloInstruction) -> bool:
    numbers, sizes = convolution.attributes.dimension_numbers, convolution.shape.dimensions
    places = math.prod(sizes[d] for d in numbers.output_spatial)
    return sizes[numbers.output_batch] >= 8 and (places < FEW_PLACES or _has_few_places(convolution))


def _images_as_places(convolution: HloInstruction) -> HloInstruction:
    """One image, channels first, in which neighbours along the last dimension are at the same place of neighbouring
    images."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, window = attributes.dimension_numbers, attributes.window
    array, kernel = convolution.operands
    array = transpose(array, (numbers.input_feature, *numbers.input_spatial, numbers.input_batch))
    kernel = transpose(kernel, (numbers.kernel_output_feature, numbers.kernel_input_feature, *numbers.kernel_spatial))
    new = replace(
        attributes, window=(*window, WindowDimension()),
        dimension_numbers=canonical_numbers(len(window) + 1, False),
    )  # fmt: skip
    order = (numbers.output_feature, *numbers.output_spatial, numbers.output_batch)
    sizes = [convolution.shape.dimensions[d] for d in order]
    result = make_instruction(
        Opcode.CONVOLUTION,
        (reshape(array, (1, *array.shape.dimensions)), reshape(kernel, (*kernel.shape.dimensions, 1))),
        new, Shape.array(convolution.shape.element, (1, *sizes)),
    )  # fmt: skip
    return transpose(reshape(result, sizes), [order.index(d) for d in range(len(order))])


def strided_pointwise(convolution: HloInstruction) -> HloInstruction | None:
    """A window of one element that skips places: the elements that it covers are taken first, and are a matrix."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, window = attributes.dimension_numbers, attributes.window
    if not all((w.size, w.padding_low, w.base_dilation) == (1, 0, 1) and w.padding_high <= 0 for w in window):
        return None
    if all(map(is_trivial, window)):
        return None
    array, kernel = convolution.operands
    limits, strides = list(array.shape.dimensions), [1] * array.shape.rank
    for source, target, part in zip(numbers.input_spatial, numbers.output_spatial, window, strict=True):
        strides[source] = part.stride
        limits[source] = (convolution.shape.dimensions[target] - 1) * part.stride + 1
    taken = SliceAttributes((0,) * array.shape.rank, tuple(limits), tuple(strides))
    array = make_instruction(Opcode.SLICE, (array,), taken)
    new = replace(attributes, window=(WindowDimension(),) * len(window))
    return make_instruction(Opcode.CONVOLUTION, (array, kernel), new, convolution.shape)


def complex_convolution(convolution: HloInstruction) -> HloInstruction | None:
    """Four convolutions of real and imaginary parts."""
    if not convolution.shape.element.is_complex:
        return None
    shape = Shape.array(convolution.shape.element.real, convolution.shape.dimensions)

    def part(x: Opcode, w: Opcode) -> HloInstruction:
        array, kernel = convolution.operands
        return make_instruction(Opcode.CONVOLUTION, (unary(x, array), unary(w, kernel)), convolution.attributes, shape)

    real = binary(Opcode.SUBTRACT, part(Opcode.REAL, Opcode.REAL), part(Opcode.IMAG, Opcode.IMAG))
    imaginary = binary(Opcode.ADD, part(Opcode.REAL, Opcode.IMAG), part(Opcode.IMAG, Opcode.REAL))
    return binary(Opcode.COMPLEX, real, imaginary)


def batch_groups(convolution: HloInstruction) -> HloInstruction | None:
    """Groups of the batch become groups of features, but not where a derivative by the kernel has them."""
    if convolution.attributes.batch_group_count > 1 and wanted_gradient(convolution) is not None:
        return None
    return batch_groups_as_feature_groups(convolution)


def gradient_numbers(spatial: int, channels_last: bool) -> ConvolutionDimensionNumbers:
    """The dimension numbers of the derivative by the kernel of a canonical convolution."""
    if channels_last:
        array, kernel = tuple(range(1, spatial + 1)), tuple(range(spatial))
        return ConvolutionDimensionNumbers(spatial + 1, 0, array, 0, spatial + 1, array, spatial, spatial + 1, kernel)
    rest = tuple(range(2, spatial + 2))
    return ConvolutionDimensionNumbers(1, 0, rest, 0, 1, rest, 1, 0, rest)


_IN_F64 = (("backend_config", '{"sums":"f64"}'),)
"""A derivative by the kernel in its form: parts of a sum have the type of the operands, and are added up in f64."""


def is_gradient(convolution: HloInstruction) -> bool:
    """True for a derivative by the kernel that has its form. A user's convolution with f64 results may have the same
    dimension numbers and types, but is in f64 as a whole."""
    numbers, spatial = convolution.attributes.dimension_numbers, len(convolution.attributes.window)
    forms = (gradient_numbers(spatial, True), gradient_numbers(spatial, False))
    is_f64 = convolution.shape.element is ElementType.F64
    return is_f64 and numbers in forms and convolution.annotations == _IN_F64


def wanted_gradient(convolution: HloInstruction) -> ConvolutionDimensionNumbers | None:
    """The form of a derivative by the kernel, if the convolution should have it.

    It has no groups of features, no holes in its input, and so much to do that no native loop takes it.
    """
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, window = attributes.dimension_numbers, attributes.window
    element, other = (o.shape.element for o in convolution.operands)
    result = element if is_gradient(convolution) else convolution.shape.element
    if element not in SUPPORTED or any(e is not element for e in (other, result)):
        return None
    if attributes.feature_group_count > 1 or any(w.base_dilation != 1 or w.reversed for w in window):
        return None
    sizes = convolution.shape.dimensions
    taps = math.prod(w.size for w in window)
    if not math.prod(sizes[d] for d in numbers.output_spatial) < taps:
        return None
    if _multiplications(convolution) < LEAST_GRADIENT:
        return None
    outputs = convolution.operands[1].shape.dimensions[numbers.kernel_output_feature] // attributes.batch_group_count
    last = numbers.input_batch == len(sizes) - 1 or (taps < SHORT_ROW and outputs >= MANY_OUTPUTS)
    columns = _rounded(outputs, _columns(element))
    many = columns <= SOME_COLUMNS * outputs and convolution.shape.num_elements >= MANY_ELEMENTS * outputs
    return gradient_numbers(len(window), last or many)


def not_reversed(convolution: HloInstruction) -> HloInstruction | None:
    """A reversed window becomes a reversed kernel, but not where the row reads the kernel backwards."""
    return None if wants_transposed_kernel(convolution) else reversed_window(convolution)


def transposed_numbers(spatial: int) -> ConvolutionDimensionNumbers:
    """The dimension numbers of the derivative by the input of a canonical convolution, channels first: the kernel is
    [input, output, s...], where input and output are the features of this convolution."""
    return replace(canonical_numbers(spatial, False), kernel_input_feature=0, kernel_output_feature=1)


def wants_transposed_kernel(convolution: HloInstruction) -> bool:
    """True for a derivative by the input, channels first, that reads its kernel without a copy: from its end, with
    inputs and outputs exchanged."""
    attributes: ConvolutionAttributes = convolution.attributes
    window = attributes.window
    if not window or attributes.dimension_numbers != transposed_numbers(len(window)):
        return False
    if not all(w.reversed or w.size == 1 for w in window) or all(w.size == 1 for w in window):
        return False
    if convolution.shape.element not in SUPPORTED or any(w.base_dilation != 1 for w in window):
        return False
    if attributes.feature_group_count * attributes.batch_group_count > 1:
        return False
    return not _has_few_places(convolution) and _multiplications(convolution) >= LEAST_GRADIENT


def _multiplications(convolution: HloInstruction) -> int:
    numbers = convolution.attributes.dimension_numbers
    kernel = convolution.operands[1].shape
    each = kernel.num_elements // max(kernel.dimensions[numbers.kernel_output_feature], 1)
    return int(convolution.shape.num_elements * each)


def _has_few_places(convolution: HloInstruction) -> bool:
    """True if channels last is better than channels first, where tiles go along the rows of the copy: too many places
    of a tile are not results, but padding."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, sizes = attributes.dimension_numbers, convolution.shape.dimensions
    if sizes[numbers.output_batch] <= 1 or not attributes.window:
        return False
    tile, window = _columns(convolution.shape.element), attributes.window
    places, last, spread = 1, 0, 0
    for d, part in zip(numbers.output_spatial, window, strict=True):
        places *= sizes[d]
        reach = (part.size - 1) * part.window_dilation // part.stride
        spread = last * sizes[d] + sizes[d] - 1
        last = last * (reach + sizes[d]) + sizes[d] - 1
    columns = _rounded(last + 1, tile)
    if columns > MOST_WASTE * places and _saved_columns(convolution, places, columns, tile) > 0:
        return True
    columns = _rounded((spread if window[-1].stride == 1 else last) + 1, tile)
    return columns > SOME_WASTE * places and _saves_columns(convolution, places, columns, tile)


def _saves_columns(convolution: HloInstruction, places: int, columns: int, tile: int) -> bool:
    """True if `columns` for each image instead of its places take longer than it takes to bring all arrays into the
    order of channels last."""
    numbers = convolution.attributes.dimension_numbers
    array, kernel = (o.shape for o in convolution.operands)
    depth = kernel.num_elements // max(kernel.dimensions[numbers.kernel_output_feature], 1)
    images = convolution.shape.dimensions[numbers.output_batch]
    saved = images * depth * _saved_columns(convolution, places, columns, tile)
    moved = MOVED * (array.num_elements + convolution.shape.num_elements) + MOVED_WEIGHT * kernel.num_elements
    return bool(saved > moved)


def _saved_columns(convolution: HloInstruction, places: int, columns: int, tile: int) -> int:
    """How many sums for an image channels last has fewer than channels first, with `columns` for each output. The tile
    of few outputs is half as wide."""
    groups = convolution.attributes.feature_group_count
    made = convolution.operands[1].shape.dimensions[convolution.attributes.dimension_numbers.kernel_output_feature]
    outputs = made // groups
    row = _rounded(outputs, tile // 2 if outputs <= tile // 2 else tile)
    return int(columns * made - places * groups * row)


def _columns(element: ElementType) -> int:
    """The columns of a tile. Small integers have wider sums."""
    return TILE_BYTES // WIDTHS[type_of_sums(element)]


def _rounded(number: int, tile: int) -> int:
    return -(-number // tile) * tile


def _is_depthwise(convolution: HloInstruction) -> bool:
    numbers, groups = convolution.attributes.dimension_numbers, convolution.attributes.feature_group_count
    kernel = convolution.operands[1].shape.dimensions
    return groups > 1 and (kernel[numbers.kernel_input_feature], kernel[numbers.kernel_output_feature]) == (1, groups)


def _has_few_outputs(convolution: HloInstruction) -> bool:
    """True for tiles with so few outputs that channels first is better: channels last, they are along a vector."""
    attributes: ConvolutionAttributes = convolution.attributes
    made = convolution.operands[1].shape.dimensions[attributes.dimension_numbers.kernel_output_feature]
    if all(map(is_trivial, attributes.window)) or _is_depthwise(convolution):
        return False
    return made // attributes.feature_group_count < FEW_OUTPUTS


def _wants_channels_last(convolution: HloInstruction) -> bool:
    """Follows the layout of the input, but for few outputs and few positions."""
    numbers = convolution.attributes.dimension_numbers
    lies_last = bool(numbers.input_spatial) and numbers.input_feature == convolution.shape.rank - 1
    if _is_depthwise(convolution):
        return lies_last
    return not _has_few_outputs(convolution) and (lies_last or _has_few_places(convolution))


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

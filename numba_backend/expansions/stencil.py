"""Expansion of a convolution of one channel: a stencil.

Filters of images and signals, cellular automata, and equations of diffusion are of this kind. Nothing that is read is
read for several channels of results, so tiles of sums in registers gain nothing. The input is padded, and the result is
the sum of its slices, each multiplied by its weight. This is element-wise, and becomes one loop together with what
follows, within loops of the program too. Depthwise convolutions, with many planes, are kernels
(`emit/convolution_rows.py`), in half of the time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...hlo.builder import make_instruction
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.convolution import ConvolutionAttributes
from ...hlo.ops.movement import PadAttributes, SliceAttributes
from ...hlo.passes.patterns import binary, broadcast, make_splat, make_zeros, reshape, transpose
from ...hlo.shape import Shape
from ...hlo.window import WindowDimension
from ..emit.convolution import SUPPORTED

MOST_TAPS, MOST_ALONG_ROW = 16, 9
"""The loop's body has a multiplication for each element of the window: longer ones take long to compile. A window along
one dimension needs few: it wastes nothing of a tile."""
UNROLLED, VECTOR_BYTES, MOST_STEPS = 16, 64, 0.3
"""A row of results of a size up to the first is unrolled. Another one is made of whole vectors, and of single elements
for the rest: the most steps for each result that are still faster than tiles."""


def convolution_as_stencil(convolution: HloInstruction) -> HloInstruction | None:
    """Slices of the padded input, multiplied by their weights and added up."""
    if not _is_stencil(convolution):
        return None
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, window = attributes.dimension_numbers, attributes.window
    array, kernel = convolution.operands
    sizes = convolution.shape.dimensions
    order = [0] * len(sizes)  # the input's dimensions, in the order of the result
    order[numbers.output_batch], order[numbers.output_feature] = numbers.input_batch, numbers.input_feature
    parts: list[WindowDimension | None] = [None] * len(sizes)
    for target, source, part in zip(numbers.output_spatial, numbers.input_spatial, window, strict=True):
        order[target], parts[target] = source, part
    array = transpose(array, order)
    kept = [d for d, part in enumerate(parts) if part is not None or sizes[d] > 1]
    array = _padded(reshape(array, [array.shape.dimensions[d] for d in kept]), [parts[d] for d in kept])
    shape = Shape.array(convolution.shape.element, [sizes[d] for d in kept])
    weights = transpose(kernel, (numbers.kernel_input_feature, numbers.kernel_output_feature, *numbers.kernel_spatial))
    weights = reshape(weights, [part.size for part in window])
    total = make_zeros(shape)
    for tap in itertools.product(*(range(part.size) for part in window)):
        at = dict(zip(numbers.output_spatial, tap, strict=True))
        read = _read(array, shape, [parts[d] for d in kept], [at.get(d, 0) for d in kept])
        weight = reshape(_slice(weights, tap, [n + 1 for n in tap]), ())
        total = binary(Opcode.ADD, total, binary(Opcode.MULTIPLY, read, broadcast(weight, shape, ())))
    return reshape(total, sizes)


def _is_stencil(convolution: HloInstruction) -> bool:
    """True for one channel of the input and one of results, few taps, and contiguous elements for neighbouring
    results."""
    attributes: ConvolutionAttributes = convolution.attributes
    numbers, window = attributes.dimension_numbers, attributes.window
    kernel = convolution.operands[1].shape.dimensions
    if attributes.batch_group_count > 1 or not window or not convolution.shape.num_elements:
        return False
    if kernel[numbers.kernel_input_feature] != 1 or kernel[numbers.kernel_output_feature] != 1:
        return False
    if any(o.shape.element is not convolution.shape.element for o in convolution.operands):
        return False
    if any(part.reversed or part.base_dilation != 1 or part.stride != 1 for part in window):
        return False
    element, sizes = convolution.shape.element, convolution.shape.dimensions
    several = sizes[numbers.output_batch] > 1  # one image stands in a loop, as a rule
    if several and element in SUPPORTED and not _has_good_rows(sizes[-1], element.byte_width):
        return False
    taps = math.prod(part.size for part in window)
    return taps <= (MOST_TAPS if sum(part.size > 1 for part in window) > 1 else MOST_ALONG_ROW)


def _has_good_rows(size: int, width: int) -> bool:
    """True if vectors make most of a row."""
    lanes = VECTOR_BYTES // width
    return size <= UNROLLED or size // lanes + size % lanes <= MOST_STEPS * size


def _padded(array: HloInstruction, parts: Sequence[WindowDimension | None]) -> HloInstruction:
    low = tuple(0 if part is None else part.padding_low for part in parts)
    high = tuple(0 if part is None else part.padding_high for part in parts)
    if not any(low) and not any(high):
        return array
    zero = make_splat(0, Shape.array(array.shape.element, ()))
    return make_instruction(Opcode.PAD, (array, zero), PadAttributes(low, high, (0,) * len(low)))


def _read(
    array: HloInstruction, shape: Shape, parts: Sequence[WindowDimension | None], tap: Sequence[int]
) -> HloInstruction:
    """The elements of the padded array that the results read for one element of the window."""
    starts = [0 if part is None else n * part.window_dilation for n, part in zip(tap, parts, strict=True)]
    return _slice(array, starts, [start + size for start, size in zip(starts, shape.dimensions, strict=True)])


def _slice(operand: HloInstruction, starts: Sequence[int], limits: Sequence[int]) -> HloInstruction:
    if not any(starts) and tuple(limits) == operand.shape.dimensions:
        return operand
    attributes = SliceAttributes(tuple(starts), tuple(limits), (1,) * len(starts))
    return make_instruction(Opcode.SLICE, (operand,), attributes)

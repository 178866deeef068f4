"""ComputationBuilder's products: dot and convolutions.

Source: the sections "Dot", "Conv (convolution)", "ConvWithGeneralPadding (convolution)"; the page "C++ interface".

`dimension_numbers` default to: input and output [batch, feature, ...], kernel [output feature, input feature, ...].
"""

from __future__ import annotations

from ..errors import ShapeError
from ..opcode import Opcode
from ..ops.convolution import ConvolutionAttributes
from ..ops.dot import DotAttributes
from ..window import ConvolutionDimensionNumbers, WindowDimension
from .construction import Construction, Handle, Integers, Pairs, integers, of_kind, refuse
from .padding import Padding, make_padding


def dot(build: Construction, lhs: Handle, rhs: Handle) -> Handle:
    """Sums of products over the last dimension of lhs and the one before the last of rhs (a vector's only one).

    Vectors give a scalar, a matrix and a vector a vector, matrices a matrix; two scalars are multiplied; arrays
    [p,q,r] and [s,r,t] give [p,q,s,t]. builder_c10: a scalar and an array have no dot.
    """
    left, right = build.array(lhs), build.array(rhs)
    if bool(left.rank) != bool(right.rank):
        refuse("a scalar and an array have no dimension in common to sum over; mul multiplies", "builder_c10")
    if not left.rank:
        return build.enqueue(Opcode.DOT, [lhs, rhs], DotAttributes())
    contracted = DotAttributes(lhs_contracting_dims=(left.rank - 1,), rhs_contracting_dims=(max(right.rank - 2, 0),))
    return build.enqueue(Opcode.DOT, [lhs, rhs], contracted)


def create_default_conv_dimension_numbers(num_spatial_dims: int = 2) -> ConvolutionDimensionNumbers:
    """Input and output: batch, feature, spatial dimensions. Kernel: output feature, input feature, spatial ones."""
    spatial = tuple(range(2, 2 + num_spatial_dims))
    return ConvolutionDimensionNumbers(
        input_batch=0, input_feature=1, input_spatial=spatial,
        kernel_input_feature=1, kernel_output_feature=0, kernel_spatial=spatial,
        output_batch=0, output_feature=1, output_spatial=spatial,
    )  # fmt: skip


def create_conv_dimension_numbers(
    batch: int,
    feature: int,
    first_spatial: int,
    second_spatial: int,
    kernel_output_feature: int,
    kernel_input_feature: int,
    kernel_first_spatial: int,
    kernel_second_spatial: int,
) -> ConvolutionDimensionNumbers:
    """Dimension numbers for two spatial dimensions; the output has the same order as the input. ShapeError
    [convolution_c1] if a number is used twice."""
    for what, used in (
        ("input", (batch, feature, first_spatial, second_spatial)),
        ("kernel", (kernel_output_feature, kernel_input_feature, kernel_first_spatial, kernel_second_spatial)),
    ):
        if len(set(used)) != len(used):
            raise ShapeError(f"the dimension numbers {list(used)} of the {what} must be distinct", "convolution_c1")
    spatial = (first_spatial, second_spatial)
    return ConvolutionDimensionNumbers(
        input_batch=batch, input_feature=feature, input_spatial=spatial,
        kernel_input_feature=kernel_input_feature, kernel_output_feature=kernel_output_feature,
        kernel_spatial=(kernel_first_spatial, kernel_second_spatial),
        output_batch=batch, output_feature=feature, output_spatial=spatial,
    )  # fmt: skip


def conv(build: Construction, lhs: Handle, rhs: Handle, window_strides: Integers, padding: Padding) -> Handle:
    """Convolution of input and kernel, with default dimension numbers and SAME or VALID padding."""
    numbers = _default_numbers(build, lhs)
    return conv_with_general_dimensions(build, lhs, rhs, window_strides, padding, numbers)


def conv_with_general_padding(
    build: Construction,
    lhs: Handle,
    rhs: Handle,
    window_strides: Integers,
    padding: Pairs,
    lhs_dilation: Integers | None = None,
    rhs_dilation: Integers | None = None,
) -> Handle:
    """Convolution with default dimension numbers; `padding` is (low, high) for each spatial dimension."""
    numbers = _default_numbers(build, lhs)
    return conv_general(build, lhs, rhs, window_strides, padding, numbers, lhs_dilation, rhs_dilation)


def conv_with_general_dimensions(
    build: Construction,
    lhs: Handle,
    rhs: Handle,
    window_strides: Integers,
    padding: Padding,
    dimension_numbers: ConvolutionDimensionNumbers,
) -> Handle:
    """Convolution with SAME or VALID padding."""
    kernel, numbers = build.array(rhs), dimension_numbers
    _check_spatial(build, lhs, rhs, numbers)
    window = [kernel.dimensions[d] for d in numbers.kernel_spatial]
    area = [build.array(lhs).dimensions[d] for d in numbers.input_spatial]
    strides = integers(window_strides, "window_strides", len(window))
    pairs = made_padding(area, window, strides, padding)
    return conv_general(build, lhs, rhs, strides, pairs, numbers)


def conv_general(
    build: Construction,
    lhs: Handle,
    rhs: Handle,
    window_strides: Integers,
    padding: Pairs,
    dimension_numbers: ConvolutionDimensionNumbers,
    lhs_dilation: Integers | None = None,
    rhs_dilation: Integers | None = None,
) -> Handle:
    """Convolution. For each spatial dimension: a stride, (low, high) padding (negative: elements are removed), and
    dilations: a factor d puts d - 1 zeros between neighbours, of the input before it is padded."""
    return conv_general_dilated(build, lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers)


def conv_general_dilated(
    build: Construction,
    lhs: Handle,
    rhs: Handle,
    window_strides: Integers,
    padding: Pairs,
    lhs_dilation: Integers | None,
    rhs_dilation: Integers | None,
    dimension_numbers: ConvolutionDimensionNumbers,
) -> Handle:
    """As `conv_general`, with XLA's order of arguments."""
    _check_spatial(build, lhs, rhs, dimension_numbers)
    kernel = build.array(rhs)
    count = len(dimension_numbers.kernel_spatial)
    strides = integers(window_strides, "window_strides", count)
    pairs = pairs_of(padding, count)
    ones = (1,) * count
    base = ones if lhs_dilation is None else integers(lhs_dilation, "lhs_dilation", count)
    holes = ones if rhs_dilation is None else integers(rhs_dilation, "rhs_dilation", count)
    window = tuple(
        WindowDimension(kernel.dimensions[d], strides[k], *pairs[k], base[k], holes[k])
        for k, d in enumerate(dimension_numbers.kernel_spatial)
    )
    return build.enqueue(Opcode.CONVOLUTION, [lhs, rhs], ConvolutionAttributes(window, dimension_numbers))


def _default_numbers(build: Construction, lhs: Handle) -> ConvolutionDimensionNumbers:
    shape = build.array(lhs)
    if shape.rank < 2:
        refuse(f"the input must have batch and feature dimensions, but it is {shape}", "builder_c10")
    return create_default_conv_dimension_numbers(shape.rank - 2)


def _check_spatial(build: Construction, lhs: Handle, rhs: Handle, numbers: ConvolutionDimensionNumbers) -> None:
    """builder_c6: the spatial dimensions are there, so that their sizes can be asked for."""
    of_kind(numbers, ConvolutionDimensionNumbers, "dimension_numbers")
    for what, operand, spatial in (("input", lhs, numbers.input_spatial), ("kernel", rhs, numbers.kernel_spatial)):
        shape = build.array(operand)
        if len(spatial) != len(numbers.input_spatial) or any(not 0 <= d < shape.rank for d in spatial):
            refuse(f"spatial dimensions {list(spatial)} do not fit the {what} {shape}", "builder_c6")


def made_padding(area: Integers, window: Integers, strides: Integers, padding: Padding) -> tuple[tuple[int, int], ...]:
    """`make_padding`. builder_c6: strides are positive; builder_c11: the padding is one of Padding."""
    of_kind(padding, Padding, "the padding")
    if any(s < 1 for s in strides):
        refuse(f"window strides {list(strides)} must be positive", "builder_c6")
    return make_padding(tuple(area), tuple(window), tuple(strides), padding)


def pairs_of(padding: Pairs, count: int) -> tuple[tuple[int, int], ...]:
    """builder_c6: (low, high) for each of `count` dimensions; builder_c11: it is not one of Padding."""
    if isinstance(padding, Padding):
        refuse(f"general padding is (low, high) for each dimension, not {padding}", "builder_c11")
    found = []
    for pair in padding:
        low, high = integers(pair, "an entry of the padding", 2)
        found.append((low, high))
    if len(found) != count:
        refuse(f"padding {found} must have one (low, high) for each of {count} dimensions", "builder_c6")
    return tuple(found)

"""Derivatives of convolution: bilinear, so each side's derivative is a convolution with the other side.

The transpose by the input slides the kernel, reversed, over the cotangent: strides become holes between its elements,
and holes between the input's elements become strides. The transpose by the kernel slides the cotangent over the input,
with batch and features exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...hlo.opcode import Opcode
from ...hlo.ops.convolution import ConvolutionAttributes
from ...hlo.shape import Shape
from ...hlo.window import ConvolutionDimensionNumbers, WindowDimension, dilated
from ...tracer.aval import ShapedArray
from ...tracer.core import Value, bind
from ...tracer.ops import array_shape, convert, reverse, zeros
from ..batches import Axis
from ..tangents import Linear, Operand
from .computations import merge, move, split
from .linear import bilinear, in_wider_type
from .tables import BATCH, TRANSPOSE
from .window import transposed_window

_O = Opcode

bilinear(_O.CONVOLUTION)


@TRANSPOSE.register(_O.CONVOLUTION)
def _convolution_transpose(
    ct: Value, operands: Sequence[Operand], attributes: ConvolutionAttributes, shape: Shape
) -> Any:
    """A convolution: of the cotangent and the kernel for the source, of the source and the cotangent for the
    kernel."""
    source, kernel = operands
    if isinstance(source, Linear):
        if isinstance(kernel, Linear):
            raise TypeError("a convolution of two values that depend on the tangents is not linear")
        return [_toward(_to_source, source, kernel, ct, attributes), None]
    assert isinstance(kernel, Linear)
    return [None, _toward(_to_kernel, kernel, source, ct, attributes)]


def _toward(rule: Any, operand: Linear, other: Value, ct: Value, attributes: ConvolutionAttributes) -> Value:
    """The cotangent of `operand` by one of the rules below, computed in the widest type of both factors."""
    if not ct.aval.size or not other.aval.size or not operand.aval.size:
        return zeros(operand.aval)
    ct, other = in_wider_type(ct, other)
    return convert(rule(operand.aval.shape, other, ct, attributes), operand.aval.dtype)


def split_into(x: Value, source: int, count: int, target: int) -> Value:
    """x with the `count` groups of dimension `source` as the major part of dimension `target`."""
    return merge(move(split(x, source, count), source, target), target)


def _convolve(x: Value, y: Value, attributes: ConvolutionAttributes, sizes: Sequence[int]) -> Value:
    return bind(_O.CONVOLUTION, (x, y), attributes, shape=array_shape(x.aval.dtype, sizes))


def _sizes(numbers: ConvolutionDimensionNumbers, batch: int, features: int, spatial: Sequence[int]) -> list[int]:
    """The dimensions of a result."""
    found = [0] * (2 + len(spatial))
    found[numbers.output_batch], found[numbers.output_feature] = batch, features
    for d, size in zip(numbers.output_spatial, spatial, strict=True):
        found[d] = size
    return found


def _to_source(sizes: Sequence[int], kernel: Value, ct: Value, a: ConvolutionAttributes) -> Value:
    """The kernel's input features become output features and the other way round, within each group."""
    n = a.dimension_numbers
    spatial = [sizes[d] for d in n.input_spatial]
    window = transposed_window(a.window, spatial, [ct.aval.shape[d] for d in n.output_spatial])
    groups = a.feature_group_count * a.batch_group_count
    if groups > 1:
        kernel = split_into(kernel, n.kernel_output_feature, groups, n.kernel_input_feature)
    numbers = ConvolutionDimensionNumbers(
        n.output_batch, n.output_feature, n.output_spatial,
        n.kernel_output_feature, n.kernel_input_feature, n.kernel_spatial,
        n.input_batch, n.input_feature, n.input_spatial,
    )  # fmt: skip
    batch, features = sizes[n.input_batch], sizes[n.input_feature]
    attributes = replace(
        a, window=window, dimension_numbers=numbers, feature_group_count=groups, batch_group_count=1,
        operand_precision=a.operand_precision[::-1],
    )  # fmt: skip
    of_groups = a.batch_group_count
    found = _convolve(ct, kernel, attributes, _sizes(numbers, batch // of_groups, features * of_groups, spatial))
    return found if of_groups == 1 else split_into(found, n.input_feature, of_groups, n.input_batch)


def _to_kernel(sizes: Sequence[int], source: Value, ct: Value, a: ConvolutionAttributes) -> Value:
    """Groups of features become groups of the batch and the other way round."""
    n = a.dimension_numbers
    window = []
    for w, d, k in zip(a.window, n.input_spatial, n.output_spatial, strict=True):
        count = ct.aval.shape[k]
        extent, area = dilated(count, w.stride), dilated(source.aval.shape[d], w.base_dilation)
        high = dilated(w.size, w.window_dilation) - 1 + extent - w.padding_low - area
        window.append(WindowDimension(count, w.window_dilation, w.padding_low, high, w.base_dilation, w.stride))
    numbers = ConvolutionDimensionNumbers(
        n.input_feature, n.input_batch, n.input_spatial,
        n.output_batch, n.output_feature, n.output_spatial,
        n.kernel_input_feature, n.kernel_output_feature, n.kernel_spatial,
    )  # fmt: skip
    attributes = replace(
        a, window=tuple(window), dimension_numbers=numbers, feature_group_count=a.batch_group_count,
        batch_group_count=a.feature_group_count,
    )  # fmt: skip
    found = _convolve(source, ct, attributes, sizes)
    return reverse_dimensions(found, [d for d, w in zip(n.kernel_spatial, a.window, strict=True) if w.reversed])


def reverse_dimensions(x: Value, dimensions: Sequence[int]) -> Value:
    return reverse(x, dimensions) if dimensions else x


# --- batching


@BATCH.register(_O.CONVOLUTION)
def _convolution_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], a: ConvolutionAttributes, shape: Shape
) -> tuple[Value, bool]:
    """A batch of inputs is a larger batch; a batch of kernels has more output features. Both: each element is a group.
    """
    n = a.dimension_numbers
    (x, y), (of_input, of_kernel) = operands, batched
    size = axis.size
    if not size:  # no groups either
        return zeros(ShapedArray((0, *shape.dimensions), shape.element.dtype)), True
    batch_groups, feature_groups = a.batch_group_count, a.feature_group_count
    new = a
    if of_input and not of_kernel:  # (groups, elements, members) of the batch
        x = _merged_within(x, n.input_batch, batch_groups)
        target, groups = n.output_batch, 1
    elif of_kernel and not of_input:
        groups = batch_groups * feature_groups
        y = _merged_within(y, n.kernel_output_feature, groups)
        target = n.output_feature
    else:
        y = merge(move(y, 0, n.kernel_output_feature), n.kernel_output_feature)
        groups, target = 1, n.output_feature
        if batch_groups > 1:
            x = merge(move(x, 0, n.input_batch), n.input_batch)
            new = replace(a, batch_group_count=batch_groups * size)
        else:
            x = merge(move(x, 0, n.input_feature), n.input_feature)
            new = replace(a, feature_group_count=feature_groups * size)
    sizes = list(shape.dimensions)
    sizes[target] *= size
    found = bind(_O.CONVOLUTION, (x, y), new, shape=array_shape(shape.element.dtype, sizes))
    members = shape.dimensions[target] // groups
    if groups == 1:
        return move(split(found, target, size, members), target, 0), True
    found = split(split(found, target, groups), target + 1, size, members)
    return merge(move(found, target + 1, 0), target + 1), True


def _merged_within(x: Value, d: int, groups: int) -> Value:
    """x without its dimension 0; its elements become a part of dimension d: each in every one of its groups."""
    if groups == 1:
        return merge(move(x, 0, d), d)
    x = move(split(x, d + 1, groups), 0, d + 1)  # (groups, elements, members)
    return merge(merge(x, d), d)

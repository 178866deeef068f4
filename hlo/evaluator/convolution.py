"""The semantics of convolution: a sum over the kernel's elements of the input, shifted, times the kernel's value.

Padding is zeros, which are multiplied: an infinity or NaN in the kernel makes NaN there. The holes of a dilation are
nothing, in the input as in the kernel: they take no part. Padding continues the input, so that in a dilated dimension
it has elements only where the dilated input would have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..opcode import Opcode
from ..ops.convolution import ConvolutionAttributes
from ..shape import Shape
from ..support.forking import PRODUCTS
from ..window import Window
from .table import EVALUATE, NDArray

_NARROW = (ElementType.F16, ElementType.BF16)


@EVALUATE.register(Opcode.CONVOLUTION)
def _convolution(shape: Shape, attributes: ConvolutionAttributes, lhs: NDArray, rhs: NDArray) -> NDArray:
    """In the result's element type: integers wrap around, pred is and/or. Floats narrower than f32 are computed in it,
    and rounded once."""
    element_type, numbers = shape.element, attributes.dimension_numbers
    compute = _computed_in(element_type)
    source = lhs.astype(compute).transpose(numbers.input_batch, numbers.input_feature, *numbers.input_spatial)
    kernel = rhs.astype(compute).transpose(
        numbers.kernel_output_feature, numbers.kernel_input_feature, *numbers.kernel_spatial
    )
    order = (numbers.output_batch, numbers.output_feature, *numbers.output_spatial)
    area = _area(source, attributes.window)
    results = [shape.dimensions[d] for d in order]
    total = np.zeros(results, compute)
    # Each group of input features, or of the batch, makes its part of the output features.
    groups = max(attributes.feature_group_count, attributes.batch_group_count)
    inputs = np.split(area, groups, axis=1 if attributes.feature_group_count > 1 else 0)
    outputs = np.split(total, groups, axis=1)
    if source.size:  # padding alone adds nothing, as in XLA, for any kernel
        for part, weights, result in zip(inputs, np.split(kernel, groups, axis=0), outputs, strict=True):
            _add_products(result, part, weights, attributes.window)
    return total.transpose(np.argsort(order)).astype(element_type.dtype, copy=False)


def _computed_in(element_type: ElementType) -> np.dtype[Any]:
    """Small integers as int8 or uint8: lower bits of sums and products do not depend on upper bits."""
    if element_type in _NARROW or (element_type.is_small and element_type.is_floating):
        return np.dtype(np.float32)
    if element_type.is_small:
        return np.dtype(np.int8 if element_type.is_signed else np.uint8)
    return element_type.dtype


def _area(source: NDArray, window: Window) -> NDArray:
    """The input with its spatial dimensions dilated, then padded or cropped; zero where there is nothing."""
    for d, part in enumerate(window, start=2):
        sizes = list(source.shape)
        sizes[d] = max((sizes[d] - 1) * part.base_dilation + 1, 0)
        spread = np.zeros(sizes, source.dtype)
        every = [slice(None)] * source.ndim
        every[d] = slice(None, None, part.base_dilation)
        spread[tuple(every)] = source
        low, high = part.padding_low, part.padding_high
        widths = [(max(low, 0), max(high, 0)) if e == d else (0, 0) for e in range(source.ndim)]
        spread = np.pad(spread, widths)
        inside = [slice(None)] * source.ndim
        inside[d] = slice(max(-low, 0), max(spread.shape[d] - max(-high, 0), max(-low, 0)))
        source = spread[tuple(inside)]
    return source


def _add_products(result: NDArray, area: NDArray, weights: NDArray, window: Window) -> None:
    """result[b, o, places] += sum over i and the kernel's elements of area[b, i, shifted] * weights[o, i, element]."""
    if result.size == 0:
        return
    places, features = result.size // result.shape[1], weights.shape[1]
    for element in np.ndindex(*weights.shape[2:]):
        shifted = area[(slice(None), slice(None), *_shift(element, window, result.shape[2:]))]
        rows = np.moveaxis(shifted, 1, -1)
        with PRODUCTS.inside():
            # Not `tensordot`: for a matrix of one element it calls axpy, and axpy takes zero times infinity to be zero.
            products = np.matmul(rows.reshape(places, features), weights[(..., *element)].T)
        moved = np.moveaxis(products.reshape(*rows.shape[:-1], -1), -1, 1)
        if any(part.base_dilation > 1 for part in window):
            moved = np.where(_is_element(element, window, result.shape[2:]), moved, result.dtype.type(0))
        if result.dtype == np.bool_:
            result |= moved
        else:
            result += moved


def _is_element(element: Sequence[int], window: Window, counts: Sequence[int]) -> NDArray:
    """For each window position, whether this element of the kernel meets no hole."""
    found = np.ones((), np.bool_)
    for cells, part, count in zip(_shift(element, window, counts), window, counts, strict=True):
        places = np.arange(count) * part.stride + cells.start - part.padding_low
        found = found[..., None] & (places % part.base_dilation == 0)
    return found


def _shift(element: Sequence[int], window: Window, counts: Sequence[int]) -> list[slice]:
    """The cells of the area that are multiplied by this element of the kernel, one for each window position."""
    cells = []
    for offset, part, count in zip(element, window, counts, strict=True):
        first = (part.size - 1 - offset if part.reversed else offset) * part.window_dilation
        cells.append(slice(first, first + (count - 1) * part.stride + 1, part.stride))
    return cells

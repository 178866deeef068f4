"""The sizes of canonical convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.convolution import is_channels_last
from ...hlo.support.records import dataclass
from ...hlo.window import Window, WindowDimension
from ..runtime.blas import ROUTINES
from .window_axes import NOTHING, Axis

SUPPORTED = frozenset((ElementType.F32, ElementType.F64))
"""Element types with vector instructions for products."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a canonical convolution. The window moves along `axes`; there is at least one."""

    element_type: ElementType
    channels_last: bool
    batch: int
    groups: int
    inputs: int
    """Input features of one group."""
    outputs: int
    """Output features of one group."""
    axes: tuple[Axis, ...]

    @property
    def features(self) -> int:
        return self.groups * self.inputs

    @property
    def made(self) -> int:
        return self.groups * self.outputs

    @property
    def positions(self) -> int:
        return math.prod(axis.count for axis in self.axes)

    @property
    def taps(self) -> int:
        return math.prod(axis.part.size for axis in self.axes)

    @property
    def is_product(self) -> bool:
        """True if BLAS can do it: not for integers, nor for a depthwise convolution, where matrices are vectors."""
        depthwise = self.groups > 1 and self.inputs == self.outputs == 1
        return self.element_type.value in ROUTINES and not depthwise

    @property
    def depth(self) -> int:
        """How many products are added up for one result."""
        return self.inputs * self.taps


def sizes_of(convolution: HloInstruction) -> Sizes:
    """The sizes of a canonical convolution; one without spatial dimensions gets one of size 1.

    The window of a derivative by the input may be reversed."""
    attributes, (array, kernel) = convolution.attributes, (o.shape.dimensions for o in convolution.operands)
    numbers, window, groups = attributes.dimension_numbers, attributes.window, attributes.feature_group_count
    assert attributes.batch_group_count == 1 and all(part.base_dilation == 1 for part in window), "not canonical"
    return Sizes(
        convolution.shape.element,
        is_channels_last(attributes),
        array[numbers.input_batch],
        groups,
        kernel[numbers.kernel_input_feature],
        kernel[numbers.kernel_output_feature] // groups,
        _axes(array, convolution.shape.dimensions, numbers.input_spatial, numbers.output_spatial, window),
    )


def sizes_of_gradient(convolution: HloInstruction, channels_last: bool) -> Sizes:
    """The sizes of a convolution, given its derivative by the kernel."""
    attributes, (array, kernel) = convolution.attributes, (o.shape.dimensions for o in convolution.operands)
    numbers, groups = attributes.dimension_numbers, attributes.batch_group_count
    window = tuple(
        WindowDimension(
            convolution.shape.dimensions[d], part.window_dilation, part.padding_low, 0, 1, part.stride
        )
        for d, part in zip(numbers.output_spatial, attributes.window, strict=True)
    )
    return Sizes(
        convolution.operands[0].shape.element,
        channels_last,
        array[numbers.input_feature],
        groups,
        array[numbers.input_batch] // groups,
        kernel[numbers.kernel_output_feature] // groups,
        _axes(array, kernel, numbers.input_spatial, numbers.kernel_spatial, window),
    )


def _axes(
    array: Sequence[int], result: Sequence[int], sources: Sequence[int], targets: Sequence[int], window: Window
) -> tuple[Axis, ...]:
    axes = tuple(Axis(array[d], result[e], part) for d, e, part in zip(sources, targets, window, strict=True))
    return axes or (Axis(1, 1, NOTHING),)


def is_pointwise(sizes: Sizes) -> bool:
    """True when the window at each position covers one element, so that the input is the patch matrix."""
    return all(
        axis.size == axis.count and (axis.part.size, axis.part.stride, axis.part.padding_low) == (1, 1, 0)
        for axis in sizes.axes
    )  # fmt: skip

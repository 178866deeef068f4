"""Windows: how they move, how many positions a window has, and which positions touch the array.

Shape rules, passes and code generation use this file. The evaluator does not: they are compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .sizes import is_symbolic, larger
from .support.records import dataclass


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """How a window moves along one dimension. Source: XLA's WindowDimension.

    The base area is first dilated (`base_dilation - 1` holes between neighbours), then padded (negative: cropped). The
    window is dilated by `window_dilation`, put at every `stride`-th element as long as it fits, and read backwards if
    `reversed`.
    """

    size: int = 1
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversed: bool = False


Window = tuple[WindowDimension, ...]


@dataclass(frozen=True, slots=True)
class ConvolutionDimensionNumbers:
    """The role of each dimension of the operands and of the result; XLA's text is `b01f_01io->b01f`."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


LARGEST = (1 << 63) - 1


def dilated(size: int, dilation: int) -> int:
    """The extent of `size` elements with `dilation - 1` holes between neighbours."""
    return size if dilation == 1 else larger((size - 1) * dilation + 1, 0)


def places(size: int, window: WindowDimension) -> int:
    """How many positions the window has along a dimension of `size` elements. Source: XLA's StridedBound."""
    area = window.padding_low + dilated(size, window.base_dilation) + window.padding_high
    extent = dilated(window.size, window.window_dilation)
    return larger((area - extent) // window.stride + 1, 0)  # type: ignore[no-any-return]


def problem(window: Window, sizes: Sequence[int]) -> str:
    """Why `window` is not valid for dimensions of these sizes; empty if it is valid."""
    if len(window) != len(sizes):
        return f"the window has {len(window)} dimensions, but {len(sizes)} are needed"
    for d, (part, size) in enumerate(zip(window, sizes, strict=True)):
        for name, value in (
            ("size", part.size),
            ("stride", part.stride),
            ("base dilation", part.base_dilation),
            ("window dilation", part.window_dilation),
        ):
            if value < 1:
                return f"the window's {name} must have every element be positive, but is {value} along dimension {d}"
        extents = (
            part.padding_low + dilated(size, part.base_dilation) + part.padding_high,
            dilated(size, part.base_dilation) + larger(part.padding_low, part.padding_high),
            dilated(part.size, part.window_dilation),
            part.stride,
        )
        pads = (part.padding_low, part.padding_high)
        if any(e > LARGEST for e in extents if not is_symbolic(e)) or any(
            p < -LARGEST for p in pads if not is_symbolic(p)
        ):
            return f"the window along dimension {d} spans more than 2**63 elements"
    return ""


def is_trivial(part: WindowDimension) -> bool:
    """True when the window does nothing along its dimension: one position for each element."""
    return (part.size, part.stride, part.padding_low, part.padding_high, part.base_dilation) == (1, 1, 0, 0, 1)


def is_plain(part: WindowDimension) -> bool:
    """True when the array has no holes: neither padding nor base dilation."""
    return part.padding_low <= 0 and part.padding_high <= 0 and part.base_dilation == 1

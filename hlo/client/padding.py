"""Padding in the client interface: Padding (SAME, VALID), PaddingConfig, and the padding of windows.

Source: XLA's client/padding.h and PaddingConfig; the sections "Pad", "Conv" and "ReduceWindow".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ..support.records import dataclass


class Padding(Enum):
    """Padding of the area over which a window slides."""

    SAME = "same"
    """Enough for one window for each `stride` elements; an odd element goes to the end."""
    VALID = "valid"
    """None."""


@dataclass(frozen=True, slots=True)
class PaddingConfigDimension:
    """Elements added before, after (negative: removed), and between neighbours."""

    edge_padding_low: int = 0
    edge_padding_high: int = 0
    interior_padding: int = 0


@dataclass(frozen=True, slots=True)
class PaddingConfig:
    """One entry for each dimension."""

    dimensions: tuple[PaddingConfigDimension, ...]

    @staticmethod
    def of(*dimensions: tuple[int, int] | tuple[int, int, int]) -> PaddingConfig:
        """From (low, high) or (low, high, interior) for each dimension."""
        return PaddingConfig(tuple(PaddingConfigDimension(*d) for d in dimensions))


def make_padding(
    input_dimensions: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
) -> tuple[tuple[int, int], ...]:
    """(low, high) for each dimension. Source: XLA's MakePadding.

    SAME: ceil(size / stride) windows; the padding that they need is split, the larger half at the end.
    """
    pairs = []
    for size, window, stride in zip(input_dimensions, window_dimensions, window_strides, strict=True):
        total = 0
        if padding is Padding.SAME:
            windows = -(-size // stride)
            total = max((windows - 1) * stride + window - size, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)

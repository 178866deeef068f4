"""`hloom.experimental.layout`: layouts of arrays on a device, with names of jax.experimental.layout."""

from dataclasses import dataclass as _dataclass
from typing import Any as _Any

from ..namespaces import publish as _publish

__all__ = ["Format", "Layout"]


@_dataclass(frozen=True)
class Layout:
    """The order of an array's dimensions in memory, the slowest first, and its tiles. Arrays here are row-major.

    >>> Layout(major_to_minor=(0, 1)).major_to_minor
    (0, 1)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


@_dataclass(frozen=True)
class Format:
    """A layout and a sharding; either may be None, which leaves it open.

    >>> import hloom
    >>> from hloom.experimental.layout import Format, Layout
    >>> Format(Layout((0, 1))).layout
    Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """

    layout: Layout | None = None
    sharding: _Any = None


_publish(__name__, examples=("from hloom.experimental import layout",))

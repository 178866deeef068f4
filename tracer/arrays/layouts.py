"""Layouts and memories as users ask for them: JAX's `Layout`, `Format`, `memory.Space`. Arrays of users are dense,
row-major, and in the memory of the process."""

from __future__ import annotations

import enum
from typing import Any

from ...hlo.notebooks import in_notebooks
from ...hlo.support.records import dataclass


class Space(enum.Enum):
    """A kind of memory. Both are the memory of the process here.

    >>> hloom.device_put(jnp.ones(2), hloom.memory.Space.Host)
    Array([1., 1.], dtype=float32)
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


@dataclass(frozen=True, slots=True, repr=False)
class Layout:
    """The order of an array's dimensions in memory, the slowest first, and its tiles. Arrays here are row-major.

    >>> Layout(major_to_minor=(0, 1)).major_to_minor
    (0, 1)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))

    @property
    def is_row_major(self) -> bool:
        return self.major_to_minor == tuple(range(len(self.major_to_minor)))

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )

    _repr_html_ = in_notebooks


@dataclass(frozen=True, slots=True, repr=False)
class Format:
    """A layout and a sharding; either may be None, which leaves it open.

    >>> Format(Layout((0, 1))).layout
    Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """

    layout: Layout | None = None
    sharding: Any = None

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"

    _repr_html_ = in_notebooks


def row_major(ndim: int) -> Layout:
    """The layout of users' arrays."""
    return Layout(tuple(range(ndim)), ())

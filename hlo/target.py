"""Targets: what a program is optimised for, as far as layouts and memory go.

A target chooses the layout of every buffer inside a program. What comes in and goes out keeps the layouts of the
module's `entry_computation_layout`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from .layout import Layout, row_major
from .shape import Shape


class Target(ABC):
    """Chooses layouts. Two arrays of one element type and one list of dimensions get the same layout, so that values
    that flow through tuples, loops and branches agree without copies."""

    name: ClassVar[str]

    @abstractmethod
    def buffer_layout(self, shape: Shape) -> Layout:
        """The layout of a buffer for an array of this shape, whose dimensions are in the order of memory already:
        the last is the most minor. Must not depend on `shape.layout`."""


class CpuTarget(Target):
    """Dense row-major buffers."""

    name = "cpu"

    def buffer_layout(self, shape: Shape) -> Layout:
        return row_major(shape.rank)

"""Targets: the layouts and memories that a program is optimised for.

A target chooses the layout of every buffer inside a program, and names the memory besides the main one. Parameters and
results of the program keep the layouts of the module's `entry_computation_layout`.

Each target has its own file: tpu_target.py has the TPU's. `targets.py` finds them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from .errors import HloError
from .layout import Layout, row_major
from .shape import Shape
from .support.records import dataclass


class TargetOptionError(HloError, ValueError):
    """An option of a target has an invalid value."""


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """Memory besides the main one (space 0, which has no limit here): `S(number)` in layouts."""

    number: int
    name: str
    size: int
    """Bytes."""

    def __str__(self) -> str:
        return f"{self.name} S({self.number})"


class Target(ABC):
    """Chooses layouts. Two arrays of one element type with the same dimensions get the same layout, so values can flow
    through tuples, loops and branches without copies."""

    name: ClassVar[str]

    @abstractmethod
    def buffer_layout(self, shape: Shape) -> Layout:
        """The layout of a buffer for an array of this shape; its dimensions are already in the order of memory: the
        last is the most minor. The layout must not depend on `shape.layout`, and is in memory space 0."""

    @property
    def fast_memory(self) -> MemorySpace | None:
        """Small, fast memory, which the pass `memory-space-assignment` fills; None: there is none."""
        return None


class CpuTarget(Target):
    """Dense row-major buffers."""

    name = "cpu"

    def buffer_layout(self, shape: Shape) -> Layout:
        return row_major(shape.rank)

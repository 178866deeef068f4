"""Random orders of dimensions for the arrays of a module, and compiling with them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.layout import Layout, Tile
from hloom.hlo.layout_rules import layout_violation
from hloom.hlo.passes.layout.layout_assignment import LayoutAssignment
from hloom.hlo.passes.manager import Pipeline
from hloom.hlo.shape import Shape
from hloom.hlo.targets import target_named
from hloom.numba_backend import compiling
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.pipeline import pipeline

Preferences = Callable[[HloInstruction], "tuple[int, ...] | None"]


def random_order(rng: random.Random, rank: int) -> tuple[int, ...]:
    """A minor_to_major."""
    return tuple(rng.sample(range(rank), rank))


TILES = ((), (Tile((2,)),), (Tile((2, 2)),), (Tile((8, 128)),), (Tile((2, 4)), Tile((2, 1))), (Tile((None, 3)),))


def with_random_entry_layouts(module: HloModule, rng: random.Random, *, tiled: bool = False) -> HloModule:
    """The module with random layouts of the caller's arguments and results; `tiled`: some in tiles, too."""

    def layout(leaf: Shape) -> Layout:
        tiles = rng.choice(TILES) if tiled else ()
        bits = leaf.element.bit_width if tiled and leaf.element.bit_width < 8 and rng.random() < 0.5 else 0
        found = Layout(random_order(rng, leaf.rank), tiles, bits)
        return found if layout_violation(leaf.element, leaf.dimensions, found) is None else replace(found, tiles=())

    def layouts(shape: Shape) -> list[Layout | None]:
        return [layout(leaf) for leaf in shape.leaves()]

    given = [layout for p in module.entry.parameters for layout in layouts(p.shape)]
    return replace(
        module, entry_parameter_layouts=tuple(given), entry_result_layouts=tuple(layouts(module.entry.root.shape))
    )


def random_preferences(rng: random.Random, share: float = 0.5) -> Preferences:
    """A random order for a share of all instructions."""

    def preferences(instruction: HloInstruction) -> tuple[int, ...] | None:
        return random_order(rng, instruction.shape.rank) if rng.random() < share else None

    return preferences


def pipeline_with(preferences: Preferences | None, *arguments: Any, **options: Any) -> Pipeline:
    """The pipeline of the Numba backend, in which orders are preferred."""
    found = pipeline(*arguments, **options)
    steps = [replace(s, preferences=preferences) if isinstance(s, LayoutAssignment) else s for s in found.steps]
    return Pipeline(found.name, tuple(steps))


def compile_with(module: HloModule, preferences: Preferences | None, target: str = "cpu") -> NumbaExecutable:
    """The executable of the Numba backend, its intermediates in the orders that are preferred."""
    with mock.patch.object(compiling, "pipeline", partial(pipeline_with, preferences)):
        return compiling.compiled(module, target_named(target))

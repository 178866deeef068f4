"""Layouts drawn at random, for tests that must pass in every layout: targets, and entry layouts of modules."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace
from itertools import chain

from hloom.hlo.buffers.values import leaf_number
from hloom.hlo.element_type import ElementType
from hloom.hlo.ir import HloModule
from hloom.hlo.layout import Layout, Tile
from hloom.hlo.shape import Shape
from hloom.hlo.target import MemorySpace, Target

TILE_SIZES = (1, 2, 3, 4, 5, 8)
LARGEST_TILE = 64
"""Places of one tile at most, so that small arrays do not become large ones."""


def random_layout(shape: Shape, rng: random.Random, permuted: bool = False, tiled: bool = True) -> Layout:
    """A layout for the element type and the dimensions of `shape`.

    Three quarters of them have tiles: one to three levels, also of odd sizes, that combine dimensions, and that have
    fewer dimensions than the array or more; some pad the tail, some pad dimensions. Types of less than a byte, and
    PRED, are often packed. `permuted`: the dimensions in any order, else in the order of memory.
    """
    order = list(range(shape.rank))[::-1]
    if permuted:
        rng.shuffle(order)
    if not tiled:
        return Layout(tuple(order))
    layout = Layout(tuple(order), element_size_in_bits=_packed_bits(shape.element, rng))
    if rng.random() < 0.75:
        layout = replace(layout, tiles=tuple(_tile(shape.rank, rng) for _ in range(rng.choice((1, 1, 2, 2, 3)))))
    elif shape.rank and rng.random() < 0.5:
        layout = replace(layout, padded_dimensions=tuple(d + rng.choice((0, 0, 1, 3)) for d in shape.dimensions))
    if rng.random() < 0.2:
        layout = replace(layout, tail_padding_alignment_in_elements=rng.choice((2, 3, 16)))
    return layout


def _packed_bits(element: ElementType, rng: random.Random) -> int:
    if element is ElementType.PRED:
        return rng.choice((0, 1))
    return element.bit_width if element.bit_width < 8 and rng.random() < 0.7 else 0


def _tile(rank: int, rng: random.Random) -> Tile:
    """Its last size is a number: `*` would have nothing to combine with."""
    sizes: list[int | None] = []
    places = 1
    for _ in range(rng.randint(1, min(rank + 1, 4))):
        size = rng.choice([s for s in TILE_SIZES if places * s <= LARGEST_TILE])
        sizes.append(size)
        places *= size
    # One that combines dimensions must not reach beyond the array.
    if 1 < len(sizes) <= rank and rng.random() < 0.3:
        sizes[rng.randrange(len(sizes) - 1)] = None
    return Tile(tuple(sizes))


@dataclass(frozen=True)
class RandomTarget(Target):
    """Each pair of an element type and a list of dimensions has a layout of its own, the same for the same seed. With
    odd seeds there is a fast memory, in which some of a program's buffers find room."""

    seed: int
    name = "random"

    def buffer_layout(self, shape: Shape) -> Layout:
        return random_layout(shape, _generator(self.seed, shape.to_text(layout=False)))

    @property
    def fast_memory(self) -> MemorySpace | None:
        return MemorySpace(3, "fast", 1024 * self.seed) if self.seed % 2 else None


def with_random_entry(module: HloModule, seed: int, tiled: bool = True) -> HloModule:
    """The module with a random layout, the dimensions in any order, for each parameter and each result; a result that
    may share the memory of a parameter has its layout."""
    rng = _generator(seed, "entry")

    def layouts(shape: Shape) -> list[Layout]:
        return [random_layout(leaf, rng, permuted=True, tiled=tiled) for leaf in shape.leaves()]

    parameters = [layouts(p.shape) for p in module.entry.parameters]
    root = module.entry.root.shape
    results = layouts(root)
    for alias in module.input_output_aliases:
        given = module.entry.parameters[alias.parameter].shape
        number = leaf_number(given, alias.parameter_index)
        results[leaf_number(root, alias.output_index)] = parameters[alias.parameter][number]
    return replace(
        module, entry_parameter_layouts=tuple(chain.from_iterable(parameters)), entry_result_layouts=tuple(results)
    )


def _generator(seed: int, text: str) -> random.Random:
    return random.Random(zlib.crc32(f"{seed} {text}".encode()))

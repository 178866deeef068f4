"""Views of shapes and layouts: the picture that `hloom layout --svg` draws."""

from __future__ import annotations

from collections.abc import Iterator

from ..hlo.element_type import ElementType
from ..hlo.layout import MEMORY_SPACES, Layout, Tile
from ..hlo.pictures.facts import facts as facts_of
from ..hlo.pictures.layout_figure import layout_figure
from ..hlo.shape import Shape
from ..hlo.sizes import is_symbolic
from ..tracer.arrays.layouts import Format
from ..tracer.arrays.layouts import Layout as UserLayout
from .page import Html, details, facts, figure, title
from .places import sharding_view
from .syntax import spans

_OUTER = 2
"""The size of a dimension that no tile divides, if there are many dimensions."""


def shape_view(shape: Shape) -> Iterator[Html]:
    """An array: its layout in words and as a picture. A tuple: its parts."""
    if shape.is_array:
        yield title("Shape", spans(shape.to_text(), "hlo"))
        yield from _array(shape)
    elif shape.is_token:
        yield title("Shape", "token[]", "orders side effects, and holds no data")
    else:
        leaves = list(shape.leaves())
        yield title("Shape", "tuple", f"{len(leaves)} array{'' if len(leaves) == 1 else 's'}")
        for leaf in leaves:
            yield details(spans(leaf.to_text(), "hlo"), *_array(leaf))


def _array(shape: Shape) -> Iterator[Html]:
    if any(is_symbolic(size) for size in shape.dimensions):
        yield facts(("layout", str(shape.array_layout)), ("sizes", "known when the program is called"))
    else:
        yield facts(*facts_of(shape))
        if shape.num_elements:
            yield figure(layout_figure(shape))


def layout_view(layout: Layout) -> Iterator[Html]:
    """A layout: its properties, and a picture of a small array in it."""
    yield title("Layout", str(layout))
    yield facts(
        ("order", _order(layout.major_to_minor)),
        ("tiles", " ".join(map(str, layout.tiles))),
        ("bits of an element", str(layout.element_size_in_bits or "")),
        ("memory", f"{MEMORY_SPACES[layout.memory_space]}, S({layout.memory_space})" if layout.memory_space else ""),
    )
    yield from _example(layout)


def _order(major_to_minor: tuple[int, ...]) -> str:
    if len(major_to_minor) < 2:
        return "one dimension" if major_to_minor else "a scalar"
    return f"dimension {', then '.join(map(str, major_to_minor))}; the last one varies fastest"


def _example(layout: Layout) -> Iterator[Html]:
    """The picture of an array whose last tiles are not full."""
    sizes = [_OUTER if len(layout.minor_to_major) > 3 else 3] * len(layout.minor_to_major)
    for tile in layout.tiles[:1]:
        for dimension, size in zip(layout.minor_to_major, reversed(tile.dimensions)):
            sizes[dimension] = _OUTER if size is None else size + max(size // 2, 1)
    kind = ElementType.F32 if layout.element_size_in_bits in (0, 32) else ElementType.S4
    if layout.padded_dimensions:
        sizes = [max(size - 1, 1) for size in layout.padded_dimensions]
    shape = Shape.array(kind, sizes, layout)
    yield details(f"an array in it: {shape.to_text()}", figure(layout_figure(shape)), is_open=True)


def user_layout_view(layout: UserLayout) -> Iterator[Html]:
    """JAX's layout, as the same layout of HLO."""
    tiles = tuple([Tile(tuple(t)) for t in layout.tiling or ()])
    order = tuple(reversed(layout.major_to_minor))
    yield from layout_view(Layout(order, tiles, layout.sub_byte_element_size_in_bits))


def format_view(form: Format) -> Iterator[Html]:
    """A layout and a sharding."""
    yield title("Format", "")
    yield from user_layout_view(form.layout) if form.layout is not None else [facts(("layout", "not stated"))]
    yield from sharding_view(form.sharding) if form.sharding is not None else [facts(("sharding", "not stated"))]



"""The facts about a layout, in a few lines: order, tiles, physical dimensions, bytes used and wasted."""

from __future__ import annotations

from collections.abc import Sequence

from ..layout import MEMORY_SPACES
from ..physical_form import PhysicalDimension
from ..shape import Shape


def dimension_names(shape: Shape) -> tuple[str, ...]:
    """Names of the dimensions for people: y and x, say; d0, d1, ... where they have no letters."""
    return shape.dimension_names or tuple(f"d{d}" for d in range(shape.rank))


def facts(shape: Shape) -> list[tuple[str, str]]:
    """Titles and sentences, in the order in which a layout is applied to an array."""
    layout, names = shape.array_layout, dimension_names(shape)
    lines = [("array", _array(shape, names))]
    if shape.rank > 1:
        lines.append(("order", _order(layout.minor_to_major, names)))
    if layout.padded_dimensions:
        padded = [f"{n} to {p}" for n, p in zip(names, layout.padded_dimensions, strict=True)]
        value = layout.padding_value.value
        lines.append(("padded", f"{', '.join(padded)}; what is there: {value}"))
    form = shape.physical_form
    before = 0
    for tile, level in zip(layout.tiles, form.levels[1:], strict=True):
        sizes = [d for d in tile.dimensions if d is not None]
        counts = [d.extent for d in level[len(level) - 2 * len(sizes) : len(level) - len(sizes)]]
        lines.append(("then" if before else "tile", f"{tile}: {_tiles(counts, sizes, before)}"))
        before = len(sizes)
    if layout.tiles:
        written = [describe(d, names) for d in form.dimensions]
        lines.append(("physical", f"{_list(form.extents)} = {_list(written)}"))
        if combined := _combined(form.dimensions, names):
            lines.append(("", combined))
    if layout.tail_padding_alignment_in_elements != 1:
        alignment = layout.tail_padding_alignment_in_elements
        lines.append(("tail", f"padded until the number of places is a multiple of {alignment}"))
    if layout.element_size_in_bits:
        lines.append(("packing", _packing(shape)))
    if layout.memory_space:
        lines.append(("space", f"S({layout.memory_space}): {MEMORY_SPACES[layout.memory_space]}"))
    lines.append(("memory", memory(shape)))
    return lines


def memory(shape: Shape) -> str:
    """Bytes of the buffer, of its elements and of its padding."""
    bits, places = shape.bits_per_element, shape.physical_form.num_elements
    logical, physical = shape.logical_byte_size, shape.byte_size
    text = f"{_count(places, 'place')}, {_count(physical, 'byte')}"
    if logical and physical != logical:
        alone = "the elements take" if bits >= 8 else "the elements take with a byte for each"
        text += f": {factor(physical / logical)} the {_count(logical, 'byte')} that {alone}"
    if padding := places - shape.num_elements:
        text += f"; {_count(padding, 'place')} ({_share(padding, places)}) {'is' if padding == 1 else 'are'} padding"
    return text


def factor(ratio: float) -> str:
    """A ratio with three digits: 1.6x, 64x, 0.125x."""
    return f"{ratio:.3g}x" if ratio < 1000 else f"{ratio:,.0f}x"


def describe(dimension: PhysicalDimension, names: Sequence[str]) -> str:
    """A physical dimension as an expression of the logical index, as Python writes it."""
    source = dimension.source
    if dimension.modulus == 1:
        return "0"
    if isinstance(source, int):
        text = names[source]
    elif not source:
        return "0"
    elif len(source) == 1:
        text = f"({describe(source[0], names)})"
    else:
        text = f"({', '.join(describe(d, names) for d in source)})"
    if dimension.divisor != 1:
        text += f"//{dimension.divisor}"
    return text if dimension.modulus is None else f"{text}%{dimension.modulus}"


def _combined(dimensions: Sequence[PhysicalDimension], names: Sequence[str]) -> str:
    """How to read the first dimension that combines others."""
    for dimension in dimensions:
        if isinstance(dimension.source, tuple) and len(dimension.source) > 1:
            first, *others = dimension.source
            number = describe(first, names)
            for source in others:
                number = f"{f'({number})' if '+' in number else number}*{source.extent} + {describe(source, names)}"
            return f"({', '.join(describe(d, names) for d in dimension.source)}) is the number {number}"
    return ""


def _share(part: int, whole: int) -> str:
    """In whole per cent; neither 0 nor 100 if there is some of it and some that is not."""
    percent = round(100 * part / whole)
    return "100%" if part == whole else "under 1%" if percent == 0 else f"{percent}%" if percent < 100 else "over 99%"


def _array(shape: Shape, names: Sequence[str]) -> str:
    bits = shape.element.bit_width if shape.array_layout.element_size_in_bits == 0 else shape.bits_per_element
    sizes = " by ".join(f"{size} ({name})" for size, name in zip(shape.dimensions, names, strict=True))
    stored = "" if bits == shape.bits_per_element else f", each in {shape.bits_per_element}"
    if not shape.rank:
        return f"a scalar of {_count(bits, 'bit')}{stored.replace('each ', '')}"
    return f"{sizes}: {_count(shape.num_elements, 'element')} of {_count(bits, 'bit')}{stored}"


def _order(minor_to_major: Sequence[int], names: Sequence[str]) -> str:
    text = f"{names[minor_to_major[0]]} varies fastest, then {', '.join(names[d] for d in minor_to_major[1:])}"
    rank = len(minor_to_major)
    if list(minor_to_major) == list(range(rank)):
        return text + " (column-major)"
    return text + " (row-major)" if list(minor_to_major) == list(range(rank))[::-1] else text


def _tiles(counts: Sequence[int], sizes: Sequence[int], before: int) -> str:
    """`before`: how many dimensions the tile before has, 0 for the first tile."""
    text = f"{_by(counts)} tiles of {_by(sizes)}"
    if len(sizes) == 1:
        text = f"{_count(counts[0], 'tile')} of {sizes[0]:,}"
    if not before:
        return text + " elements"
    return f"in each of these, {text}" if len(sizes) <= before else f"over these, {text}"


def _by(sizes: Sequence[int]) -> str:
    return " by ".join(f"{size:,}" for size in sizes)


def _packing(shape: Shape) -> str:
    bits = shape.bits_per_element
    if bits < 8 and 8 % bits == 0:
        return f"{_count(bits, 'bit')} an element: {8 // bits} in a byte, the first in its lowest bits"
    return f"{_count(bits, 'bit')} an element"


def _list(items: Sequence[object]) -> str:
    return "[" + ", ".join(f"{i:,}" if isinstance(i, int) else str(i) for i in items) + "]"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")

"""From an index to its position in memory and back, in words, one step after the other.

The steps follow XLA's page "Tiled layout": order the dimensions, pad, divide by each tile (combining dimensions first
where the tile has `*`), and read the result as one number. The arithmetic is independent of `PhysicalForm`, step by
step, and must give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..index_util import linear_index, multi_index
from ..layout import Tile
from ..shape import Shape
from ..support.records import dataclass
from .facts import dimension_names


@dataclass(frozen=True, slots=True)
class _Coordinate:
    """One number of an index on its way to memory: its name, its value, and its upper bound."""

    name: str
    value: int
    size: int


def index_steps(shape: Shape, index: Sequence[int]) -> str:
    """How the linear index of an element is computed. Errors as of `index_util.linear_index`."""
    place = linear_index(shape, index)
    layout, names = shape.array_layout, dimension_names(shape)
    steps = _Steps()
    sizes = layout.padded_dimensions or shape.dimensions
    level = [_Coordinate(names[d], index[d], sizes[d]) for d in reversed(layout.minor_to_major)]
    if not level:
        steps.add("Order", ["a scalar has no dimensions: its index is ()"])
    else:
        lines = [f"minor_to_major is {_braces(layout.minor_to_major)}: from major to minor the dimensions are "
                 f"{', '.join(c.name for c in level)}"]  # fmt: skip
        if layout.padded_dimensions:
            lines.append(f"padding makes the sizes {_list(shape.dimensions)} to {_list(layout.padded_dimensions)}")
        steps.add("Order", [*lines, _state(level)])
    for tile in layout.tiles:
        level, lines = _divided(level, tile)
        steps.add(f"Tile {tile}", [*lines, _state(level)])
    linear = 0
    for coordinate in level:
        linear = linear * coordinate.size + coordinate.value
    assert linear == place, "two ways to one place"
    steps.add("Linear index", [f"{_sum(level)} = {linear}"] if len(level) > 1 else [str(linear)])
    steps.add("Bytes", [_bytes(shape, linear)])
    return f"{shape.to_text()}, element {_tuple(index)}\n\n{steps.text()}\n\nElement {_tuple(index)} is at {linear}.\n"


def linear_steps(shape: Shape, linear: int) -> str:
    """The element at a position in memory, or that it is padding. Errors as of `index_util.multi_index`."""
    found = multi_index(shape, linear)
    form, layout, names = shape.physical_form, shape.array_layout, dimension_names(shape)
    steps = _Steps()
    steps.add("Bytes", [_bytes(shape, linear)])
    title = f"{shape.to_text()}, place {linear}"

    def padding_at() -> str:
        assert found is None, "two ways back"
        return done(f"Place {linear} is padding.")

    def done(answer: str) -> str:
        return f"{title}\n\n{steps.text()}\n\n{answer}\n"

    count = math.prod(form.extents)
    if linear >= count:
        steps.add("Tail", [f"the array ends before {count:,}; what follows fills the buffer to {form.num_elements:,}"])
        return padding_at()
    values, lines = _split(linear, form.extents)
    steps.add("Places", [*lines, f"index {_list(values)} in sizes {_list(form.extents)}"])
    sizes = layout.padded_dimensions or shape.dimensions
    levels = [[(names[d], sizes[d]) for d in reversed(layout.minor_to_major)]]
    for tile in layout.tiles:
        named = [_Coordinate(name, 0, size) for name, size in levels[-1]]
        levels.append([(c.name, c.size) for c in _divided(named, tile)[0]])
    for tile, before in zip(reversed(layout.tiles), reversed(levels[:-1]), strict=True):
        values, lines, padding = _undivided(values, tile, before)
        if padding:
            steps.add(f"Tile {tile}", [*lines, padding])
            return padding_at()
        steps.add(f"Tile {tile}", [*lines, f"index {_list(values)} in sizes {_list([size for _, size in before])}"])
    index = [0] * shape.rank
    for value, dimension in zip(values, reversed(layout.minor_to_major), strict=True):
        index[dimension] = value
    if outside := [d for d in range(shape.rank) if index[d] >= shape.dimensions[d]]:
        d = outside[0]
        steps.add("Order", [f"{names[d]} is {index[d]}, and the array ends before {shape.dimensions[d]}"])
        return padding_at()
    if shape.rank > 1:
        order = ", ".join(names[d] for d in reversed(layout.minor_to_major))
        steps.add("Order", [f"the dimensions from major to minor are {order}, so the index is {_tuple(index)}"])
    assert found == tuple(index), "two ways back"
    return done(f"At place {linear} is element {_tuple(index)}.")


def _divided(level: list[_Coordinate], tile: Tile) -> tuple[list[_Coordinate], list[str]]:
    """The effect of a tile on an index, and the divisions in words."""
    rank = len(tile.dimensions)
    lines = []
    if rank > len(level):
        missing = rank - len(level)
        lines.append(f"the tile has {missing} more dimension{'s' * (missing > 1)} than the array: of size 1 there")
        level = [_Coordinate("", 0, 1)] * missing + level
    untouched, covered = level[: len(level) - rank], level[len(level) - rank :]
    quotients, remainders = [], []
    combined: list[_Coordinate] = []
    for size, coordinate in zip(tile.dimensions, covered, strict=True):
        combined.append(coordinate)
        if size is None:
            continue
        whole, words = _whole(combined)
        combined = []
        lines += words
        quotient, remainder = divmod(whole.value, size)
        count = -(-whole.size // size)
        quotients.append(_Coordinate(_over(whole.name, "//", size), quotient, count))
        remainders.append(_Coordinate(_over(whole.name, "%", size), remainder, size))
        if whole.name:
            padding = "" if whole.size % size == 0 else f"; {whole.size:,} is padded to {count * size:,}"
            lines.append(f"{whole.name}: {whole.value} = {quotient} * {size} + {remainder}, so tile {quotient}, and "
                         f"{remainder} in the tile{padding}")  # fmt: skip
    return [*untouched, *quotients, *remainders], lines


def _over(name: str, operator: str, size: int) -> str:
    return f"{name}{operator}{size}" if name else ""


def _whole(combined: list[_Coordinate]) -> tuple[_Coordinate, list[str]]:
    """Several dimensions as one, and how that is computed."""
    if len(combined) == 1:
        return combined[0], []
    value, size = 0, 1
    for coordinate in combined:
        value, size = value * coordinate.size + coordinate.value, size * coordinate.size
    name = f"({', '.join(c.name for c in combined)})"
    values, sizes = _list([c.value for c in combined]), _list([c.size for c in combined])
    line = f"* combines {name}: {values} in sizes {sizes} is {_sum(combined)} = {value} of {size:,}"
    return _Coordinate(name, value, size), [line]


def _undivided(values: list[int], tile: Tile, before: list[tuple[str, int]]) -> tuple[list[int], list[str], str]:
    """Undo a tile: the index before it, the sums in words, and if this is padding, why."""
    rank, count = len(tile.dimensions), sum(d is not None for d in tile.dimensions)
    missing = max(rank - len(before), 0)
    level = [("", 1)] * missing + before
    untouched = len(level) - rank
    quotients, remainders = values[untouched : untouched + count], values[untouched + count :]
    found, lines, combined, number = values[:untouched], [], list[tuple[str, int]](), 0
    for size, dimension in zip(tile.dimensions, level[untouched:], strict=True):
        combined.append(dimension)
        if size is None:
            continue
        quotient, remainder = quotients[number], remainders[number]
        number += 1
        value = quotient * size + remainder
        name = combined[0][0] if len(combined) == 1 else f"({', '.join(n for n, _ in combined)})"
        end = math.prod(s for _, s in combined)
        if name:
            lines.append(f"{name}: tile {quotient}, and {remainder} in it: {quotient} * {size} + {remainder} = {value}")
        if value >= end:
            what = name or "a dimension that the array has not"
            return [], lines, f"{what} is {value}, and ends before {end}"
        parts, words = _split(value, [s for _, s in combined])
        if len(combined) > 1:
            lines += [f"{name} is {value}:", *words]
        found += parts
        combined = []
    return found[missing:], lines, ""


def _split(number: int, sizes: Sequence[int]) -> tuple[list[int], list[str]]:
    """The mixed-radix digits of a number, major to minor, and the divisions in words. Sizes of 1 are not told."""
    digits, lines = [], []
    for position, size in reversed(list(enumerate(sizes))):
        quotient, digit = divmod(number, size)
        if size > 1 and any(s > 1 for s in sizes[:position]):
            lines.append(f"{number} = {quotient} * {size} + {digit}")
        digits.append(digit)
        number = quotient
    return digits[::-1], lines


def _sum(level: Sequence[_Coordinate]) -> str:
    """The mixed-radix number of an index: ((1 * 3 + 1) * 2 + 0) * 2 + 1. Sizes of 1 are not told."""
    told = [c for c in level if c.size != 1]
    if not told:
        return "0"
    text = str(told[0].value)
    for number, coordinate in enumerate(told[1:]):
        text = f"({text})" if number else text
        text += f" * {coordinate.size} + {coordinate.value}"
    return text


def _bytes(shape: Shape, linear: int) -> str:
    bits = shape.bits_per_element
    first = linear * bits
    if bits % 8 == 0:
        size = bits // 8
        if size == 1:
            return f"{linear} * 1 byte an element: byte {linear}"
        return f"{linear} * {size} bytes an element: bytes {linear * size} to {linear * size + size - 1}"
    byte, bit = divmod(first, 8)
    if bit + bits <= 8:
        low = f"bit {bit}" if bits == 1 else f"bits {bit} to {bit + bits - 1}"
        return f"{linear} * {bits} bit{'s' * (bits > 1)} an element is bit {first}: byte {byte}, {low} of it"
    return f"{linear} * {bits} bits an element: bits {first} to {first + bits - 1} of the buffer, from byte {byte} on"


def _state(level: Sequence[_Coordinate]) -> str:
    return f"index {_list([c.value for c in level])} in sizes {_list([c.size for c in level])}"


def _list(numbers: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, numbers)) + "]"


def _tuple(numbers: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, numbers)) + ")"


def _braces(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


class _Steps:
    """Numbered steps of a few lines each."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[str]]] = []

    def add(self, title: str, lines: list[str]) -> None:
        self.steps.append((title, lines))

    def text(self) -> str:
        written = []
        for number, (title, lines) in enumerate(self.steps, 1):
            written.append(f"{number}. {title}")
            written += [f"     {line}" for line in lines]
        return "\n".join(written)

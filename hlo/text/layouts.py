"""Layouts in text, as XLA writes them.

``{`` dimension numbers, minor to major, separated by commas ``:`` properties ``}``. XLA writes and reads the properties
in one order; here any order is read. `layout_rules.py` checks the values of properties, once the array's type is known.

Source: HloParserImpl::ParseLayout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..layout import MAX_RANK, Layout, PaddingValue, Tile, row_major
from .scanner import Scanner

Place: TypeAlias = tuple[str | int, ...]
"""A part of a layout: the name of a property of `Layout`, then indices into it. () is the whole."""
Positions: TypeAlias = dict[Place, int]
"""The position in the text at which each part of a layout begins."""


def read_layout(scanner: Scanner, positions: Positions | None = None) -> Layout:
    """Read XLA's text, e.g. ``{1,0}`` or ``{1,0:T(8,128)(2,1)S(1)}``. HloParseError if malformed, or if the layout has
    a property that `Layout` cannot hold, such as sparse dimensions. Dense dimensions, ``D(D,D)``, mean the same as
    none; split configurations, ``SC(1:8)``, distribute data over cores: both are read and ignored.

    `positions`, if given, is filled in.
    """
    if positions is not None:
        positions[()] = scanner.skip()
    scanner.expect("{", "to open a layout")
    order: list[int] = []
    if not scanner.peek("}") and not scanner.peek(":"):
        order = _integers(scanner, "a dimension number", positions, "minor_to_major")
    if not scanner.accept(":") or scanner.peek("}"):
        scanner.expect("}", "to close the layout")
        rank = len(order)
        default = row_major(rank) if rank <= MAX_RANK else None
        found = tuple(order)
        return default if default is not None and default.minor_to_major == found else Layout(found)
    properties = _Properties(scanner, {} if positions is None else positions, len(order))
    seen = set()
    while not scanner.peek("}"):
        position = scanner.skip()
        key = _key(scanner.text, position)
        if key in _UNSUPPORTED and key not in seen:
            raise scanner.error(f"layouts with {_UNSUPPORTED[key]} are not supported")
        if key in seen or key not in _READERS:
            raise scanner.expected("a layout property (D, PD, PV, T, L, E, S or SC, each once) or '}'")
        seen.add(key)
        scanner.position = position + len(key)
        _READERS[key](properties)
    scanner.expect("}", "to close the layout")
    return Layout(
        tuple(order),
        properties.tiles,
        properties.numbers.get("element_size_in_bits", 0),
        properties.numbers.get("memory_space", 0),
        properties.numbers.get("tail_padding_alignment_in_elements", 1),
        properties.padded_dimensions,
        properties.padding_value,
    )


_TWO_LETTERS = ("PD", "PV", "SC")
_UNSUPPORTED = {
    "#": "a type for the indices of a sparse array",
    "*": "a type for the pointers of a sparse array",
    "P": "a physical shape",
    "M": "a prefix for dynamic sizes",
}
_PADDING_VALUES = {v.value: v for v in PaddingValue if v is not PaddingValue.UNKNOWN_PAD}


def _key(text: str, position: int) -> str:
    two = text[position : position + 2]
    return two if two in _TWO_LETTERS else two[:1]


class _Properties:
    """The properties of a layout that have been read."""

    def __init__(self, scanner: Scanner, positions: Positions, rank: int) -> None:
        self.scanner = scanner
        self.positions = positions
        self.rank = rank
        self.tiles: tuple[Tile, ...] = ()
        self.numbers: dict[str, int] = {}
        self.padded_dimensions: tuple[int, ...] = ()
        self.padding_value = PaddingValue.UNKNOWN_PAD

    def read_number(self, name: str) -> None:
        """`(8)`"""
        self.scanner.expect("(")
        self.positions[(name,)] = self.scanner.skip()
        self.numbers[name] = self.scanner.integer("a number")
        self.scanner.expect(")")

    def read_tiles(self) -> None:
        """`(8,128)(2,1)`, `*` for a dimension that is combined with the next"""
        scanner = self.scanner
        tiles: list[Tile] = []
        while scanner.peek("("):
            self.positions["tiles", len(tiles)] = scanner.skip()
            scanner.expect("(")
            sizes: list[int | None] = []
            while not scanner.peek(")") or sizes:
                self.positions["tiles", len(tiles), len(sizes)] = scanner.skip()
                sizes.append(None if scanner.accept("*") else scanner.integer("a tile size or '*'"))
                if not scanner.accept(","):
                    break
            scanner.expect(")", "to close the tile")
            tiles.append(Tile(tuple(sizes)))
        if not tiles:
            raise scanner.expected("'(' to open a tile")
        self.tiles = tuple(tiles)

    def read_padded_dimensions(self) -> None:
        """`(3,5)`"""
        self.scanner.expect("(")
        self.positions["padded_dimensions",] = self.scanner.skip()
        what = "the size to which a dimension is padded"
        sizes = _integers(self.scanner, what, self.positions, "padded_dimensions")
        self.scanner.expect(")", "to close the padded dimensions")
        self.padded_dimensions = tuple(sizes)

    def read_padding_value(self) -> None:
        """`(zero)`"""
        scanner = self.scanner
        scanner.expect("(")
        position = self.positions["padding_value",] = scanner.skip()
        name = scanner.word("a padding value")
        if name not in _PADDING_VALUES:
            raise scanner.error(f"padding is {', '.join(_PADDING_VALUES)}, not {name[:40]!r}", position)
        scanner.expect(")")
        self.padding_value = _PADDING_VALUES[name]

    def read_dense(self) -> None:
        """`(D,D)`: the kind of each dimension, dense or one of the sparse kinds."""
        scanner = self.scanner
        start = scanner.skip()
        scanner.expect("(")
        kinds = [scanner.word("D")]
        while scanner.accept(","):
            kinds.append(scanner.word("D"))
        if any(kind != "D" for kind in kinds) or not scanner.peek(")"):
            raise scanner.error("sparse layouts are not supported: expected only dense dimensions (D)", start)
        scanner.expect(")")
        if len(kinds) != self.rank:
            raise scanner.error(f"the layout of {self.rank} dimensions says of {len(kinds)} that they are dense", start)

    def read_splits(self) -> None:
        """`(1:8,16)(0:4)`"""
        scanner = self.scanner
        while True:
            scanner.expect("(", "to open a split configuration")
            scanner.integer("a dimension number")
            scanner.expect(":")
            scanner.integer("an index")
            while scanner.accept(","):
                scanner.integer("an index")
            scanner.expect(")", "to close the split configuration")
            if not scanner.peek("("):
                return


_READERS: dict[str, Callable[[_Properties], None]] = {
    "D": _Properties.read_dense,
    "PD": _Properties.read_padded_dimensions,
    "PV": _Properties.read_padding_value,
    "T": _Properties.read_tiles,
    "L": lambda properties: properties.read_number("tail_padding_alignment_in_elements"),
    "E": lambda properties: properties.read_number("element_size_in_bits"),
    "S": lambda properties: properties.read_number("memory_space"),
    "SC": _Properties.read_splits,
}


def _integers(scanner: Scanner, what: str, positions: Positions | None, name: str) -> list[int]:
    """Numbers separated by commas, at least one."""
    numbers: list[int] = []
    while True:
        if positions is not None:
            positions[name, len(numbers)] = scanner.skip()
        numbers.append(scanner.integer(what))
        if not scanner.accept(","):
            return numbers

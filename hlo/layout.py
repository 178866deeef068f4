"""Layouts: where in memory the elements of an array lie.

Source: XLA's Layout (layout.h, xla_data.proto) and the pages "Shapes and layout" and "Tiled layout".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from .text.scanner import Scanner

MAX_RANK = 64
"""Dimensions of an array at most: NumPy's limit, and more than any program needs."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One level of tiling: the tile's extent in the most minor dimensions, major to minor.

    A dimension of None combines it with the next more minor one (`*` in text).
    """

    dimensions: tuple[int | None, ...]

    def __str__(self) -> str:
        return "(" + ",".join("*" if d is None else str(d) for d in self.dimensions) + ")"


class PaddingValue(Enum):
    """What the padding elements of a buffer hold (PaddingValue of the first xla_data.proto)."""

    UNKNOWN_PAD = "unknown"
    ZERO_PAD = "zero"
    ONE_PAD = "one"
    LOWEST_PAD = "lowest"
    HIGHEST_PAD = "highest"


@dataclass(frozen=True, slots=True)
class Layout:
    """The physical order of an array's dimensions; the most minor dimension varies fastest.

    `tiles`, `element_size_in_bits`, `tail_padding_alignment_in_elements` and the `padded_dimensions` of XLA's first
    layouts describe formats that pack or pad elements; a layout with any of them set is not dense.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[Tile, ...] = ()
    element_size_in_bits: int = 0
    memory_space: int = 0
    tail_padding_alignment_in_elements: int = 1
    padded_dimensions: tuple[int, ...] = ()
    """The size to which each logical dimension is padded; empty: none is."""
    padding_value: PaddingValue = PaddingValue.UNKNOWN_PAD
    """What padding elements hold."""

    @property
    def is_dense(self) -> bool:
        """True when elements lie one after the other without tiles, packing or padding."""
        return (
            not self.tiles
            and self.element_size_in_bits == 0
            and self.tail_padding_alignment_in_elements == 1
            and not self.padded_dimensions
        )

    @property
    def is_row_major(self) -> bool:
        """True for the default layout: dense, with the last dimension most minor."""
        return self.is_dense and self.memory_space == 0 and self.minor_to_major == _descending(len(self.minor_to_major))

    def __str__(self) -> str:
        text = ",".join(map(str, self.minor_to_major))
        suffix = ""
        if self.tiles:
            suffix += "T" + "".join(map(str, self.tiles))
        if self.tail_padding_alignment_in_elements != 1:
            suffix += f"L({self.tail_padding_alignment_in_elements})"
        if self.element_size_in_bits:
            suffix += f"E({self.element_size_in_bits})"
        if self.memory_space:
            suffix += f"S({self.memory_space})"
        return "{" + text + (":" + suffix if suffix else "") + "}"


@lru_cache(maxsize=64)
def _descending(rank: int) -> tuple[int, ...]:
    return tuple(range(rank - 1, -1, -1))


@lru_cache(maxsize=64)
def row_major(rank: int) -> Layout:
    """The default layout of an array with `rank` dimensions: the last dimension is the most minor."""
    return Layout(_descending(rank))


def read_layout(scanner: Scanner) -> Layout:
    """Read XLA's text, e.g. ``{1,0}`` or ``{1,0:T(8,128)(2,1)S(1)}``. HloParseError if malformed, or where the layout
    has a property that `Layout` cannot hold: sparse dimensions, say. Dense dimensions, ``D(D,D)``, are as none said,
    and split configurations, ``SC(1:8)``, say which core has what: both are read over."""
    scanner.expect("{", "to open a layout")
    minor_to_major = []
    if not scanner.peek("}") and not scanner.peek(":"):
        minor_to_major.append(scanner.integer("a dimension number"))
        while scanner.accept(","):
            minor_to_major.append(scanner.integer("a dimension number"))
    tiles: tuple[Tile, ...] = ()
    numbers = {"E": 0, "S": 0, "L": 1}
    if scanner.accept(":"):
        seen = set()
        while not scanner.peek("}"):
            position = scanner.skip()
            letter = scanner.text[position : position + 2]
            letter = letter if letter == "SC" else letter[:1]
            if letter in _UNSUPPORTED and letter not in seen:
                raise scanner.error(f"layouts with {_UNSUPPORTED[letter]} are not supported")
            if letter in seen or (letter not in ("D", "SC", "T") and letter not in numbers):
                raise scanner.expected("a layout property (D, T, L, E, S or SC, each once) or '}'")
            seen.add(letter)
            scanner.position = position + len(letter)
            if letter == "T":
                tiles = _read_tiles(scanner)
            elif letter == "D":
                _read_dense(scanner, len(minor_to_major))
            elif letter == "SC":
                _read_splits(scanner)
            else:
                scanner.expect("(")
                start = scanner.skip()
                numbers[letter] = scanner.integer("a number")
                if numbers[letter] < 0:
                    raise scanner.error(f"layout property {letter} must not be negative", start)
                scanner.expect(")")
    scanner.expect("}", "to close the layout")
    if not tiles and numbers == {"E": 0, "S": 0, "L": 1} and len(minor_to_major) <= MAX_RANK:
        default = row_major(len(minor_to_major))
        if default.minor_to_major == tuple(minor_to_major):
            return default
    return Layout(tuple(minor_to_major), tiles, numbers["E"], numbers["S"], numbers["L"])


_UNSUPPORTED = {
    "#": "a type for the indices of a sparse array",
    "*": "a type for the pointers of a sparse array",
    "P": "a physical shape",
    "M": "a prefix for dynamic sizes",
}


def _read_dense(scanner: Scanner, rank: int) -> None:
    """`(D,D)`: what each dimension is, dense or one of the sparse kinds."""
    start = scanner.skip()
    scanner.expect("(")
    kinds = [scanner.word("D")]
    while scanner.accept(","):
        kinds.append(scanner.word("D"))
    if any(kind != "D" for kind in kinds) or not scanner.peek(")"):
        raise scanner.error("sparse layouts are not supported: expected only dense dimensions (D)", start)
    scanner.expect(")")
    if len(kinds) != rank:
        raise scanner.error(f"the layout of {rank} dimensions says of {len(kinds)} that they are dense", start)


def _read_splits(scanner: Scanner) -> None:
    """`(1:8,16)(0:4)`"""
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


def _read_tiles(scanner: Scanner) -> tuple[Tile, ...]:
    tiles = []
    while scanner.accept("("):
        sizes: list[int | None] = []
        while True:
            if scanner.accept("*"):
                sizes.append(None)
            else:
                start = scanner.skip()
                sizes.append(scanner.integer("a tile size or '*'"))
                if sizes[-1] is not None and sizes[-1] < 1:
                    raise scanner.error("a tile size must be positive", start)
            if not scanner.accept(","):
                break
        scanner.expect(")", "to close the tile")
        tiles.append(Tile(tuple(sizes)))
    if not tiles:
        raise scanner.expected("'(' to open a tile")
    return tuple(tiles)

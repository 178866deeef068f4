"""Colours of layout pictures: tiles in eight pastels that dark text stays legible on, neighbours apart in hue."""

from __future__ import annotations

TILES = ("#a9d0f0", "#ffd19a", "#b5e0a8", "#d8c3ec", "#fff0a0", "#9fe0da", "#f0d3b5", "#f9c1d9")
BACKGROUNDS = (153, 216, 150, 183, 229, 116, 223, 218)
"""Of the 256 colours of terminals, those nearest to TILES."""
INK = "#1f2933"
FAINT = "#7b8794"
PADDING_INK = "#b8c0c8"
PADDING = "#ffffff"
CELL_EDGE = "#ffffff"
PADDING_EDGE = "#dfe3e8"
TILE_EDGE = "#3e4c59"
BOX_EDGE = "#d62828"
PAPER = "#ffffff"

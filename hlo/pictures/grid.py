"""A grid of labelled boxes, each in its colour, as text and as a figure: devices of a mesh, parts of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..support.records import dataclass
from . import palette
from .drawing import Drawing, Line, Rectangle, Text, text_width

_EDGE, _SIZE, _LABEL = 1.5, 12.0, 11.0
_HIGH, _LEAST = 34.0, 64.0
"""How high a box is, and how wide at least."""


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its label, and the number of its colour."""

    label: str
    colour: int = 0


NO_BOX = Box("", -1)
"""A place without a box."""

Paint = Callable[[str, Box], str]


def plain(text: str, box: Box) -> str:
    """No colour."""
    return text


def coloured(text: str, box: Box) -> str:
    """The box's colour behind the text; for terminals that know 256 colours."""
    if box.colour < 0:
        return text
    return f"\x1b[38;5;16;48;5;{palette.BACKGROUNDS[box.colour % len(palette.BACKGROUNDS)]}m{text}\x1b[0m"


def grid_text(rows: Sequence[Sequence[Box]], width: int, height: int, paint: Paint = plain) -> str:
    """The grid in lines: a box has `width` characters and `height` lines, and lines between boxes are drawn."""
    lines = []
    count = len(rows[0])
    for k, row in enumerate(rows):
        left, middle, right = "┌┬┐" if k == 0 else "├┼┤"
        lines.append(left + middle.join(["─" * width] * count) + right)
        for n in range(height):
            cells = [paint(f"{box.label if n == height // 2 else '':^{width}}", box) for box in row]
            lines.append("│" + "│".join(cells) + "│")
    lines.append("└" + "┴".join(["─" * width] * count) + "┘")
    return "\n".join(lines)


def grid_figure(rows: Sequence[Sequence[Box]], title: str, down: str = "", across: str = "") -> Drawing:
    """The grid as a figure; `down` and `across` name its axes."""
    wide = max([_LEAST, *[text_width(box.label, _SIZE) + 16 for row in rows for box in row]])
    left = _EDGE + (text_width(down, _LABEL) + 26 if down else 0)
    top = _EDGE + (20 if across else 0)
    items: list[Rectangle | Line | Text] = []
    if across:
        items.append(Text(left, top - 11, f"{across} →", _LABEL, "currentColor", "start"))
    if down:
        items.append(Text(_EDGE, top + 12, f"{down} ↓", _LABEL, "currentColor", "start"))
    for r, row in enumerate(rows):
        for c, box in enumerate(row):
            if box.colour < 0:
                continue
            x, y = left + c * wide, top + r * _HIGH
            fill = palette.TILES[box.colour % len(palette.TILES)]
            items.append(Rectangle(x, y, wide - 2, _HIGH - 2, fill, palette.FAINT, 0.8, 3))
            items.append(Text(x + wide / 2 - 1, y + _HIGH / 2 - 1, box.label, _SIZE, palette.INK))
    columns = max(len(row) for row in rows)
    width = max(left + columns * wide, left + text_width(across, _LABEL) + 20)
    return Drawing(width + _EDGE, top + len(rows) * _HIGH + _EDGE, title, "none", items)

"""A layout as a figure: on the left the array, coloured by tile, with each element's place in memory; on the right
memory, in the same colours, with the index of the element at each place. Padding is white.

Red boxes are the tiles of the second level. The figures of XLA's page "Tiled layout" are drawn in this way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..index_util import check_array
from ..shape import Shape
from ..support.records import dataclass
from . import palette
from .axes import Axis, shown_coordinates
from .drawing import Drawing, Line, Rectangle, Text, text_width, to_svg
from .facts import describe, dimension_names, memory
from .layout_text import line_length
from .view import Cell, LayoutView

_MARGIN, _BETWEEN, _HEIGHT = 24.0, 56.0, 28.0
_NUMBER, _LABEL, _CAPTION = 12.0, 10.5, 12.0
_GAP = 22.0
"""How wide a column is, or how high a row, that stands for those left out."""
_INSET = 2.5
"""Between a cell's edge and a red box in it."""
_WHOLE, _EXCERPT, _SLICES = 16, 14, 3
"""Lines of a grid that is shown whole, of an excerpt, and how many slices are shown."""
_PANEL = 480.0
"""How wide the array and memory should be at most, each."""


def layout_figure(shape: Shape) -> Drawing:
    """The figure of an array shape. It may have no elements; then there is only the title."""
    view = LayoutView(shape)
    page = _Page()
    heading = shape.to_text()
    page.text(_MARGIN, _MARGIN + 8, heading, 17, anchor="start", bold=True, mono=True)
    y = _MARGIN + 34
    if shape.array_layout.tiles:
        names = dimension_names(shape)
        dimensions = shape.physical_form.dimensions
        written = ", ".join(describe(d, names) for d in dimensions)
        sizes = ",".join(f"{d.extent}" for d in dimensions)
        line = f"in memory: [{sizes}] = [{written}]"
        page.text(_MARGIN, y, line, 12, palette.FAINT, anchor="start", mono=True)
        y += 24
    bottom = y
    if shape.num_elements:
        top = y + 12
        right, array_bottom = _array(page, view, _MARGIN, top)
        memory_bottom = _memory(page, view, right + _BETWEEN, top)
        bottom = max(array_bottom, memory_bottom) + 22
        bottom = _legend(page, view, bottom)
    page.text(_MARGIN, bottom + 6, memory(shape), _CAPTION, palette.FAINT, anchor="start")
    return page.drawing(f"Layout of {heading}: {memory(shape)}")


def layout_svg(shape: Shape) -> str:
    """The figure of an array shape as SVG; in a notebook, `IPython.display.SVG(hlo.layout_svg(shape))` shows it.

    ShapeError, index_c1: `shape` is a tuple.

    >>> from hloom import hlo
    >>> shape = hlo.Shape.array(hlo.ElementType.F32, (2, 3))
    >>> hlo.layout_svg(shape)[:4]
    '<svg'
    """
    check_array(shape)
    return to_svg(layout_figure(shape))


class _Page:
    """Items, and how far they reach."""

    def __init__(self) -> None:
        self.items: list[Rectangle | Line | Text] = []
        self.width = self.height = 0.0

    def add(self, item: Rectangle | Line) -> None:
        self.items.append(item)
        match item:
            case Rectangle():
                self._reach(item.x + item.width, item.y + item.height)
            case Line():
                self._reach(max(item.x1, item.x2), max(item.y1, item.y2))

    def text(
        self, x: float, y: float, text: str, size: float, colour: str = palette.INK, *, anchor: str = "middle",
        bold: bool = False, mono: bool = False,
    ) -> None:  # fmt: skip
        self.items.append(Text(x, y, text, size, colour, anchor, bold, mono))
        width = text_width(text, size, mono) * (1.04 if bold else 1)
        self._reach(x + {"start": width, "middle": width / 2, "end": 0}[anchor], y + size / 2)

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def drawing(self, title: str) -> Drawing:
        return Drawing(
            math.ceil(self.width + _MARGIN), math.ceil(self.height + _MARGIN), title, palette.PAPER, self.items
        )


@dataclass(frozen=True, slots=True)
class _Square:
    """One place of a grid, as drawn. `tile` and `box` are equal for neighbours without an edge between them."""

    text: str
    fill: str | None
    ink: str
    tile: object
    box: object


_NOTHING = _Square("", None, palette.INK, None, None)


def _array(page: _Page, view: LayoutView, x: float, y: float) -> tuple[float, float]:
    """Draw the array; its right and lower end."""
    drawn = view.drawn
    digits = len(str(view.shape.physical_form.num_elements - 1))
    wide = max(34.0, text_width("0" * digits, _NUMBER) + 14)
    columns = view.axis(drawn[-1], _fitting(view.extent(drawn[-1]), wide)) if drawn else None
    rows = view.axis(drawn[0], _most(view.extent(drawn[0]))) if len(drawn) > 1 else None
    page.text(x, y, "array: the place of each element", _CAPTION, anchor="start", bold=True)
    y += 26
    right = x + text_width("array: the place of each element", _CAPTION) * 1.04
    labels = [str(axis.extent - 1) for axis in (rows,) if axis]
    left = x + (text_width(f"{rows.name} {labels[0]}", _LABEL) + 10 if rows else 4)
    widths = [_GAP if at is None else wide for at in columns.shown] if columns else [wide]
    heights = [_GAP * 0.8 if at is None else _HEIGHT for at in rows.shown] if rows else [_HEIGHT]
    for part in view.slices(rows, columns, _SLICES):
        if part is None:
            page.text(left, y, "…", 16, palette.FAINT, anchor="start")
            y += 22
            continue
        if part.outer:
            where = ", ".join(f"{view.names[d]} = {at}" for d, at in part.outer)
            page.text(left, y, where, _LABEL + 0.5, palette.INK, anchor="start", bold=True)
            y += 22
        if columns:
            _column_labels(page, columns, left, y, widths)
        top = y + 12
        if rows:
            _row_labels(page, rows, left - 8, top, heights)
        _grid(page, _filled([[_element(cell) for cell in line] for line in part.cells]), left, top, widths, heights)
        right = max(right, left + sum(widths))
        y = top + sum(heights) + 26
    return right, y - 26


def _column_labels(page: _Page, axis: Axis, left: float, y: float, widths: Sequence[float]) -> None:
    page.text(left - 8, y, axis.name, _LABEL, palette.FAINT, anchor="end", bold=True)
    for at, width in zip(axis.shown, widths, strict=True):
        page.text(left + width / 2, y, _label(at, axis), _LABEL, palette.FAINT)
        left += width


def _row_labels(page: _Page, axis: Axis, right: float, top: float, heights: Sequence[float]) -> None:
    for number, (at, height) in enumerate(zip(axis.shown, heights, strict=True)):
        text = _label(at, axis)
        text = f"{axis.name} {text}" if number == 0 else text
        page.text(right, top + height / 2, text, _LABEL, palette.FAINT, anchor="end", bold=False)
        top += height


def _label(at: int | None, axis: Axis) -> str:
    return "…" if at is None else str(at) if at < axis.size else ""


def _element(cell: Cell | None) -> _Square | None:
    if cell is None:
        return None
    if cell.is_padding:
        return _Square(str(cell.place), palette.PADDING, palette.PADDING_INK, cell.tile, cell.box)
    return _Square(str(cell.place), palette.TILES[cell.colour], palette.INK, cell.tile, cell.box)


def _memory(page: _Page, view: LayoutView, x: float, y: float) -> float:
    """Draw memory; its lower end."""
    shape = view.shape
    places = shape.physical_form.num_elements
    title = "memory: the element at each place"
    page.text(x, y, title, _CAPTION, anchor="start", bold=True)
    index = ",".join(str(max(d - 1, 0)) for d in shape.dimensions) or "0"
    wide = max(34.0, text_width(index, _NUMBER) + 12)
    length = line_length(view, int(_PANEL / wide))
    count = -(-places // length)
    along = shown_coordinates(length, length, 1, _fitting(length, wide), view.places_in_box)
    down = shown_coordinates(count, count, max(view.places_in_tile // length, 1), _most(count))
    left = x + text_width(str(places - 1), _LABEL) + 14
    widths = [_GAP if at is None else wide for at in along]
    y += 38
    for number in down:
        if number is None:
            page.text(left + 10, y + 8, "…", 16, palette.FAINT)
            y += 24
            continue
        first = number * length
        page.text(left - 8, y + _HEIGHT / 2, str(first), _LABEL, palette.FAINT, anchor="end")
        line: list[_Square | None] = []
        for offset in along:
            if offset is None:
                line.append(None)
            elif first + offset < places:
                line.append(_place(view, view.at(first + offset)))
            else:
                line.append(_NOTHING)
        _grid(page, _filled([line]), left, y, widths, [_HEIGHT])
        y += _HEIGHT + 4
    return y - 4


def _place(view: LayoutView, cell: Cell) -> _Square:
    tile = cell.place // view.places_in_tile if view.is_tiled else 0
    box = cell.place // view.places_in_box if view.places_in_box > 1 else ()
    if cell.index is None:
        return _Square("", palette.PADDING, palette.PADDING_INK, tile, box)
    text = ",".join(map(str, cell.index)) or "0"
    return _Square(text, palette.TILES[cell.colour], palette.INK, tile, box)


def _most(count: int) -> int:
    return _WHOLE if count <= _WHOLE else _EXCERPT


def _fitting(count: int, wide: float) -> int:
    """How many cells of a line of so many fit into a panel."""
    return count if count * wide <= _PANEL + wide else max(int(_PANEL / wide), 6)


_Grid = list[list[_Square | None]]


def _filled(grid: _Grid) -> list[list[_Square]]:
    """An omitted square gets the colour of its neighbours, if they belong to one tile."""
    rows, columns = len(grid), len(grid[0])
    filled: _Grid = [list(line) for line in grid]
    for r in range(rows):
        for c in range(columns):
            if grid[r][c] is None and 0 < c < columns - 1:
                filled[r][c] = _between(filled[r][c - 1], grid[r][c + 1])
    for r in range(1, rows - 1):
        for c in range(columns):
            if filled[r][c] is None:
                filled[r][c] = _between(filled[r - 1][c], filled[r + 1][c])
    return [[_NOTHING if square is None else square for square in line] for line in filled]


def _between(a: _Square | None, b: _Square | None) -> _Square | None:
    if a is None or b is None:
        return None
    same = a.tile == b.tile and a.tile is not None
    fill = a.fill if same and a.fill == b.fill else None
    return _Square("…", fill, palette.FAINT, a.tile if same else None, a.box if a.box == b.box else None)


def _grid(
    page: _Page, grid: list[list[_Square]], left: float, top: float, widths: Sequence[float], heights: Sequence[float]
) -> None:
    """Cells, then the edges of tiles, then red boxes."""
    xs, ys = [left], [top]
    for width in widths:
        xs.append(xs[-1] + width)
    for height in heights:
        ys.append(ys[-1] + height)
    for r, line in enumerate(grid):
        for c, square in enumerate(line):
            if square.fill is not None:
                edge = palette.PADDING_EDGE if square.fill == palette.PADDING else palette.CELL_EDGE
                page.add(Rectangle(xs[c], ys[r], widths[c], heights[r], square.fill, edge))
            if square.text:
                middle = (xs[c] + widths[c] / 2, ys[r] + heights[r] / 2)
                page.text(*middle, square.text, _NUMBER, square.ink)
    _edges(page, grid, xs, ys)
    _boxes(page, grid, xs, ys)


def _edges(page: _Page, grid: list[list[_Square]], xs: Sequence[float], ys: Sequence[float]) -> None:
    """Dark lines around tiles, each as long as it goes straight on."""
    rows, columns = len(grid), len(grid[0])

    def tile(r: int, c: int) -> object:
        return grid[r][c].tile if 0 <= r < rows and 0 <= c < columns else None

    for r in range(rows + 1):
        start = None
        for c in range(columns + 1):
            edge = c < columns and tile(r - 1, c) != tile(r, c)
            if edge and start is None:
                start = c
            elif not edge and start is not None:
                page.add(Line(xs[start], ys[r], xs[c], ys[r], palette.TILE_EDGE, 1.6))
                start = None
    for c in range(columns + 1):
        start = None
        for r in range(rows + 1):
            edge = r < rows and tile(r, c - 1) != tile(r, c)
            if edge and start is None:
                start = r
            elif not edge and start is not None:
                page.add(Line(xs[c], ys[start], xs[c], ys[r], palette.TILE_EDGE, 1.6))
                start = None


def _boxes(page: _Page, grid: list[list[_Square]], xs: Sequence[float], ys: Sequence[float]) -> None:
    """A red box around neighbours in one tile of the second level: the largest rectangles of equal `box`."""
    rows, columns = len(grid), len(grid[0])
    done: set[tuple[int, int]] = set()
    for r in range(rows):
        for c in range(columns):
            box = grid[r][c].box
            if box in ((), None) or (r, c) in done:
                continue
            right = c + 1
            while right < columns and grid[r][right].box == box:
                right += 1
            below = r + 1
            while below < rows and all(grid[below][k].box == box for k in range(c, right)):
                below += 1
            done |= {(i, k) for i in range(r, below) for k in range(c, right)}
            x, y = xs[c] + _INSET, ys[r] + _INSET
            size = xs[right] - xs[c] - 2 * _INSET, ys[below] - ys[r] - 2 * _INSET
            page.add(Rectangle(x, y, *size, None, palette.BOX_EDGE, 1.3, 3))


def _legend(page: _Page, view: LayoutView, y: float) -> float:
    """The meaning of colours and boxes; the lower end."""
    tiles = view.shape.array_layout.tiles
    x = _MARGIN
    entries: list[tuple[str, str | None, str, str]] = []
    if tiles:
        entries.append(("colour", palette.TILES[0], palette.TILE_EDGE, f"one tile {tiles[0]}"))
    else:
        entries.append(("colour", palette.TILES[0], palette.CELL_EDGE, "elements that follow each other in memory"))
    if view.places_in_box > 1:
        bits = view.places_in_box * view.shape.bits_per_element
        text = f"one tile {tiles[1]}: {view.places_in_box} elements, {bits} bits"
        entries.append(("box", None, palette.BOX_EDGE, text))
    if view.shape.physical_form.num_elements > view.shape.num_elements:
        entries.append(("padding", palette.PADDING, palette.PADDING_EDGE, "padding"))
    for _, fill, stroke, text in entries:
        page.add(Rectangle(x, y - 7, 14, 14, fill, stroke, 1.3, 0 if fill else 3))
        page.text(x + 21, y, text, _CAPTION - 0.5, palette.INK, anchor="start")
        x += 21 + text_width(text, _CAPTION - 0.5) + 26
    return y + 20

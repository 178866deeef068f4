"""A layout in a terminal: the array with each element's position in memory, then memory with its elements.

Lines between cells are the edges of tiles; colours repeat them. Without colour the text is the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from ..index_util import check_array
from ..shape import Shape
from .axes import Axis, shown_coordinates
from .facts import facts
from .palette import BACKGROUNDS
from .view import Cell, LayoutView, Slice

_WHOLE, _EXCERPT, _SLICES = 24, 14, 3
"""Lines of a table that is shown whole, of an excerpt, and how many slices are shown."""
_LEAST_ON_A_LINE = 4

_CROSSINGS = dict(zip(product((False, True), repeat=4), "   ─│┌┐┬│└┘┴│├┤┼", strict=True))
"""Where lines meet: by whether one comes from above, from below, from the left, from the right."""

Paint = Callable[[str, Cell | None], str]


def plain(text: str, cell: Cell | None) -> str:
    """No colour."""
    return text


def coloured(text: str, cell: Cell | None) -> str:
    """The tile's colour behind an element, grey text for padding; for terminals that know 256 colours."""
    if cell is None:
        return text
    if cell.is_padding:
        return f"\x1b[90m{text}\x1b[0m"
    bold = "1;" if sum(cell.box) % 2 else ""
    return f"\x1b[{bold}38;5;16;48;5;{BACKGROUNDS[cell.colour]}m{text}\x1b[0m"


def layout_text(shape: Shape, width: int = 100, paint: Paint = plain) -> str:
    """All that there is to see of an array shape, in lines of about `width` characters: the output of `hloom layout`.

    `paint` gets each cell's text and its meaning: `plain`, or `coloured` for a terminal. ShapeError, index_c1: `shape`
    is a tuple.

    >>> from hloom import hlo
    >>> columns = hlo.Shape.array(hlo.ElementType.S32, (2, 3), hlo.Layout((0, 1)))
    >>> print(hlo.layout_text(columns).splitlines()[0])
    s32[2,3]{0,1}
    """
    check_array(shape)
    view = LayoutView(shape)
    blocks = [f"{shape.to_text()}\n\n{_facts(shape)}"]
    if shape.num_elements:
        blocks += [_array(view, width, paint), _memory(view, width, paint)]
    else:
        blocks.append("There are no elements to show: a dimension has size 0.")
    return "\n\n".join(blocks) + "\n"


def _facts(shape: Shape) -> str:
    lines = facts(shape)
    wide = max(len(title) for title, _ in lines)
    return "\n".join(f"  {title:{wide}}  {text}" for title, text in lines)


def _array(view: LayoutView, width: int, paint: Paint) -> str:
    """The array, slice by slice."""
    form = view.shape.physical_form
    drawn = view.drawn
    wide = len(str(form.num_elements - 1)) + 1
    names = [view.names[d] for d in drawn]
    margin = 2 + len(names[0] if len(names) > 1 else "") + 1 + len(str(view.extent(drawn[0]) if drawn else 0)) + 2
    columns = view.axis(drawn[-1], (width - margin) // (wide + 1)) if drawn else None
    rows = view.axis(drawn[0], _most(view.extent(drawn[0]))) if len(drawn) > 1 else None
    few = rows is None or len(rows.shown) <= _EXCERPT
    slices = list(view.slices(rows, columns, _SLICES if few else 2))
    whole = (rows is None or rows.is_whole) and (columns is None or columns.is_whole) and None not in slices
    unit = "byte" if view.shape.bits_per_element == 8 else "place"
    title = f"The array, with the {unit} of each element in memory"
    title += ":" if whole else "; an excerpt:"
    parts = [title]
    for each in slices:
        if each is None:
            left_out = math.prod(view.shape.dimensions[d] for d in range(view.shape.rank) if d not in drawn) - sum(
                s is not None for s in slices
            )
            parts.append(f"  … {left_out:,} more …")
            continue
        heading = ", ".join(f"{view.names[d]} = {at}" for d, at in each.outer)
        grid = "\n".join(_grid(each, rows, columns, wide, paint))
        parts.append(f"  {heading}\n\n{grid}" if heading else grid)
    return "\n\n".join(parts)


def _grid(part: Slice, rows: Axis | None, columns: Axis | None, wide: int, paint: Paint) -> Iterator[str]:
    row_labels = [_label(at, rows) for at in rows.shown] if rows else [""]
    row_labels[0] = f"{rows.name} {row_labels[0]}" if rows else ""
    left = max(map(len, row_labels))
    column_labels = [_label(at, columns) for at in columns.shown] if columns else [""]
    wide = max(wide, max(map(len, column_labels)) + 1)
    if columns:
        left = max(left, len(columns.name))
        header = " ".join(f"{label:>{wide}}" for label in column_labels)
        yield f"  {columns.name:>{left}} {header}"
    cells = part.cells
    for number, line in enumerate(cells):
        if number:
            edge = _edge(cells[number - 1], line, wide)
            if "─" in edge:
                yield f"  {' ' * left} {edge}".rstrip()
        text = ""
        for k, cell in enumerate(line):
            if k:
                text += "│" if _differ(line[k - 1], cell) else _space(line[k - 1], cell, paint)
            text += paint(f"{_number(cell, line, k):>{wide}}", cell)
        yield f"  {row_labels[number]:>{left}} {text}".rstrip()


def _most(count: int) -> int:
    """How many lines to show of a table of so many."""
    return _WHOLE if count <= _WHOLE else _EXCERPT


def _label(at: int | None, axis: Axis) -> str:
    return "…" if at is None else str(at) if at < axis.size else "·"


def _number(cell: Cell | None, line: Sequence[Cell | None], k: int) -> str:
    if cell is None:
        return "…"
    return "·" if cell.is_padding else str(cell.place)


def _differ(a: Cell | None, b: Cell | None) -> bool:
    """Is there an edge of a tile between two cells? None: cells that are left out are on the side of the others."""
    return a is not None and b is not None and a.tile != b.tile


def _space(a: Cell | None, b: Cell | None, paint: Paint) -> str:
    """The space between two cells of one tile: it has the tile's colour, if both have."""
    if a is None or b is None or a.is_padding or b.is_padding or (a.tile, a.colour) != (b.tile, b.colour):
        return " "
    return paint(" ", a)


def _edge(above: Sequence[Cell | None], below: Sequence[Cell | None], wide: int) -> str:
    """The line between two rows."""
    edges: list[bool] = []
    for a, b in zip(above, below, strict=True):
        gap = a is None and b is None and bool(edges)
        edges.append(edges[-1] if gap else _differ(a, b))
    text = ""
    for k, edge in enumerate(edges):
        if k:
            text += _CROSSINGS[_differ(above[k - 1], above[k]), _differ(below[k - 1], below[k]), edges[k - 1], edge]
        text += ("─" if edge else " ") * wide
    return text


def _memory(view: LayoutView, width: int, paint: Paint) -> str:
    """The buffer from its first place to its last."""
    shape = view.shape
    places = shape.physical_form.num_elements
    wide = len(",".join(str(max(d - 1, 0)) for d in shape.dimensions)) if shape.rank else 1
    heads = _heads(view)
    label_widths = [
        max(len(str(title)), len(str(last))) for title, last in zip(heads(None), heads(places - 1), strict=True)
    ]
    margin = 2 + sum(w + 2 for w in label_widths) + 1
    most = max((width - margin) // (wide + 1), 4)
    length = line_length(view, most)
    count = -(-places // length)
    along = shown_coordinates(length, length, 1, most, view.places_in_box)
    down = shown_coordinates(count, count, max(view.places_in_tile // length, 1), _most(count))
    whole = None not in along and None not in down
    title = "Memory, place by place, with the index of the element there" + (":" if whole else "; an excerpt:")

    def head(texts: Sequence[object]) -> str:
        return "  " + "  ".join(f"{text!s:>{w}}" for text, w in zip(texts, label_widths, strict=True))

    lines = [head(heads(None))]
    for number in down:
        if number is None:
            lines.append(head(["…"] * len(label_widths)))
            continue
        first = number * length
        cells = [None if offset is None else view.at(first + offset) for offset in along
                 if offset is None or first + offset < places]  # fmt: skip
        line = head(heads(first)) + " "
        for k, cell in enumerate(cells):
            line += "│" if k and _parted(view, cells[k - 1], cell) else _space(cells[k - 1] if k else None, cell, paint)
            text = "…" if cell is None else "·" if cell.index is None else ",".join(map(str, cell.index)) or "0"
            line += paint(f"{text:>{wide}}", cell)
        lines.append(line)
    parts = [title, "\n".join(lines)]
    if word := first_word(view):
        parts.append(word)
    if places > shape.num_elements:
        parts.append("· is padding.")
    return "\n\n".join(parts)


def _heads(view: LayoutView) -> Callable[[int | None], tuple[object, ...]]:
    """The text before a line of memory that begins at a place; for None the titles of these columns."""
    bits = view.shape.bits_per_element

    def of(place: int | None) -> tuple[object, ...]:
        if bits == 8:
            return ("byte",) if place is None else (place,)
        return ("place", "byte") if place is None else (place, place * bits // 8)

    return of


def line_length(view: LayoutView, most: int) -> int:
    """How many places a line of memory has: a tile if it fits, else the largest natural part of one that does."""
    tile = view.places_in_tile
    candidates: list[int] = []
    product = 1
    for extent in reversed(view.shape.physical_form.extents):
        product *= extent
        if product > 1 and product <= tile and (not candidates or product > candidates[-1]):
            candidates.append(product)
    if tile not in candidates:
        candidates.append(tile)
    fitting = [c for c in candidates if c <= most]
    if fitting and (fitting[-1] >= _LEAST_ON_A_LINE or fitting[-1] == tile):
        return fitting[-1]
    return next((c for c in candidates if c > most), candidates[-1])


def _parted(view: LayoutView, a: Cell | None, b: Cell | None) -> bool:
    """A line between two places of memory: the edge of a tile of the second level, or of a byte of packed elements."""
    if a is None or b is None:
        return False
    bits = view.shape.bits_per_element
    if view.places_in_box > 1:
        return a.place // view.places_in_box != b.place // view.places_in_box
    return bits < 8 and a.place * bits // 8 != b.place * bits // 8


def first_word(view: LayoutView) -> str:
    """The bits of the first elements in the first 32-bit word of memory, if a word has several elements; else ""."""
    bits = view.shape.bits_per_element
    packed = view.shape.array_layout.element_size_in_bits or view.places_in_box > 1
    if bits > 16 or 32 % bits or not packed:
        return ""
    count = min(32 // bits, view.shape.physical_form.num_elements)
    parts = []
    for number in shown_coordinates(count, count, 1, 5):
        if number is None:
            parts.append("…")
            continue
        index = view.at(number).index
        held = "padding" if index is None else ",".join(map(str, index)) or "the scalar"
        low, high = number * bits, (number + 1) * bits - 1
        parts.append(f"bit {low}: {held}" if bits == 1 else f"bits {low}-{high}: {held}")
    return "The first 32 bits of memory, from the lowest on: " + "; ".join(parts) + "."

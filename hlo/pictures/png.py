"""A drawing as a PNG file, by Matplotlib (the extra `examples`), which is imported when the first one is written."""

from __future__ import annotations

from pathlib import Path

from ..errors import UnsupportedError
from .drawing import Drawing, Line, Rectangle, Text

_SCALE = 2.0
"""Pixels of the file for one of the drawing."""
_MOST_PIXELS = 2**15
"""Matplotlib's limit is 2^16 along each side."""


def write_png(drawing: Drawing, path: str | Path) -> None:
    """Write the file. UnsupportedError without Matplotlib, OSError if the file cannot be written."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyBboxPatch, Patch
        from matplotlib.patches import Rectangle as Square
    except ImportError:
        raise UnsupportedError(
            'PNG needs Matplotlib, which is not installed: pip install "hloom[examples]", or write SVG, which needs '
            "nothing"
        ) from None
    scale = min(_SCALE, _MOST_PIXELS / max(drawing.width, drawing.height))
    dpi = 72 * scale  # one unit of the drawing is a point
    figure = Figure(figsize=(drawing.width / 72, drawing.height / 72), dpi=dpi, facecolor=drawing.background)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    for order, item in enumerate(drawing.items):
        match item:
            case Rectangle():
                fill, edge = item.fill or "none", item.stroke or "none"
                width = item.stroke_width if item.stroke else 0
                corner = (item.x, item.y)
                patch: Patch
                if item.radius:
                    style = f"round,pad=0,rounding_size={item.radius}"
                    patch = FancyBboxPatch(corner, item.width, item.height, style)
                else:
                    patch = Square(corner, item.width, item.height)
                patch.set(facecolor=fill, edgecolor=edge, linewidth=width, zorder=order)
                axes.add_patch(patch)
            case Line():
                axes.plot(
                    [item.x1, item.x2],
                    [item.y1, item.y2],
                    color=item.stroke,
                    linewidth=item.stroke_width,
                    solid_capstyle="projecting",
                    zorder=order,
                )
            case Text():
                axes.text(
                    item.x,
                    item.y,
                    item.text,
                    fontsize=item.size,
                    color=item.colour,
                    ha={"start": "left", "middle": "center", "end": "right"}[item.anchor],
                    va="center_baseline",
                    weight="bold" if item.bold else "normal",
                    family="DejaVu Sans Mono" if item.mono else "DejaVu Sans",
                    zorder=order,
                    parse_math=False,
                )
    figure.savefig(str(path), dpi=dpi, format="png")

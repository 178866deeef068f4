"""A drawing: rectangles, lines and texts on a sheet, written as SVG. Lengths are pixels, y grows downwards."""

from __future__ import annotations

import html
from dataclasses import field

from ..support.records import dataclass
from ..text.escape import visible

SANS = "Verdana, DejaVu Sans, Helvetica, Arial, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"


@dataclass(frozen=True, slots=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    radius: float = 0.0
    about: str = ""
    """Its meaning, which a browser shows beside the mouse."""


@dataclass(frozen=True, slots=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str
    stroke_width: float = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """`x` is the left end, the middle or the right end of the text, as `anchor` says; `y` is half of its height."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: str = "middle"
    bold: bool = False
    mono: bool = False


@dataclass(slots=True)
class Drawing:
    """A sheet of `width` by `height`, and the objects on it, from back to front. `title` is for readers with screen
    readers."""

    width: float
    height: float
    title: str
    background: str
    items: list[Rectangle | Line | Text] = field(default_factory=list)


def text_width(text: str, size: float, mono: bool = False) -> float:
    """About how wide a text is: fonts differ."""
    return len(text) * size * (0.602 if mono else 0.6)


def to_svg(drawing: Drawing) -> str:
    """SVG 1.1. The same drawing gives the same text."""
    width, height = _number(drawing.width), _number(drawing.height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="{SANS}">',
        f"<title>{_escaped(drawing.title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{drawing.background}"/>',
        *map(_element, drawing.items),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _element(item: Rectangle | Line | Text) -> str:
    n = _number
    match item:
        case Rectangle():
            text = f'<rect x="{n(item.x)}" y="{n(item.y)}" width="{n(item.width)}" height="{n(item.height)}"'
            if item.radius:
                text += f' rx="{n(item.radius)}"'
            text += f' fill="{item.fill or "none"}"'
            if item.stroke:
                text += f' stroke="{item.stroke}" stroke-width="{n(item.stroke_width)}"'
            about = f"<title>{_escaped(item.about)}</title>" if item.about else ""
            return f"{text}>{about}</rect>" if about else text + "/>"
        case Line():
            return (
                f'<line x1="{n(item.x1)}" y1="{n(item.y1)}" x2="{n(item.x2)}" y2="{n(item.y2)}" '
                f'stroke="{item.stroke}" stroke-width="{n(item.stroke_width)}" stroke-linecap="square"/>'
            )
        case Text():
            text = f'<text x="{n(item.x)}" y="{n(item.y + 0.35 * item.size)}" font-size="{n(item.size)}"'
            text += f' fill="{item.colour}"'
            if item.anchor != "start":
                text += f' text-anchor="{item.anchor}"'
            if item.bold:
                text += ' font-weight="bold"'
            if item.mono:
                text += f' font-family="{MONO}"'
            return f"{text}>{_escaped(item.text)}</text>"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    return html.escape(visible(text), quote=False)

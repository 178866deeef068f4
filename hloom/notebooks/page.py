"""The elements that views are made of: tables, facts, figures, parts that unfold, and the style sheet.

A colour is mixed with the colour of the notebook's own text: it gets darker on a light page and lighter on a dark one,
so there is no list of themes. A notebook that removes the style sheet still shows text, tables and pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ..hlo.pictures.drawing import Drawing, to_svg
from ..hlo.support.tables import Table
from ..hlo.text.escape import visible
from .display import naming_cells


def _mixed(colour: str, share: int, other: str = "currentColor") -> str:
    return f"color-mix(in srgb,{colour} {share}%,{other})"


_RULES = {
    "": "font-size:13px;line-height:1.45;overflow-x:auto",
    ".title": "margin:0 0 .4em;font-size:1.1em",
    ".title small,.faint,.comment,.facts th": "opacity:.65",
    "pre,code": "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:12px;"
    "background:none;color:inherit;padding:0",
    "pre": "margin:.2em 0 .6em;padding-left:.8em;border:0;white-space:pre;overflow-x:auto;"
    f"border-left:2px solid {_mixed('currentColor', 20, 'transparent')}",
    "details": "margin:.15em 0",
    "details>:not(summary)": "margin-left:1.1em",
    "summary": "cursor:pointer;display:list-item",
    "table": "border-collapse:collapse;margin:.2em 0 .6em;font-size:12px;color:inherit",
    "tr,tr:hover": "background:none",
    "th,td": "text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0;border:0;max-width:none;white-space:normal",
    "th[style],td[style],.facts th": "white-space:nowrap",
    "thead th": f"border-bottom:1px solid {_mixed('currentColor', 40, 'transparent')}",
    ".facts th": "font-weight:normal",
    "svg": "max-width:100%;height:auto;display:block;margin:.4em 0",
    ".keyword": "font-weight:bold",
    ".operation": f"color:{_mixed('#1668e3', 70)}",
    ".type": f"color:{_mixed('#0a8f5b', 70)}",
    ".string": f"color:{_mixed('#c2410c', 70)}",
    ".attribute": f"color:{_mixed('#9333ea', 65)}",
    ".removed": f"background:{_mixed('#e5484d', 22, 'transparent')}",
    ".added": f"background:{_mixed('#30a46c', 22, 'transparent')}",
}
"""The style of elements in a view, by selector."""
_ROOT = ":is(.hloom,#hloom)"
"""The element with a view. No element has this id: it makes the rules stronger than those of the notebook."""


def _rule(selectors: str, style: str) -> str:
    return f"{','.join([f'{_ROOT} {selector}'.rstrip() for selector in selectors.split(',')])}{{{style}}}"


STYLE = "\n".join([_rule(selectors, style) for selectors, style in _RULES.items()])
MOST_LINES = 2000
"""Lines of one text. A notebook keeps what it shows in its file."""


class Html(str):
    """Text in which tags are tags. Any other text is escaped when it becomes a part of an element."""

    __slots__ = ()


def tag(name: str, *inside: str, **attributes: str) -> Html:
    """One element. `class_` is its class."""
    written = "".join([f' {key.rstrip("_")}="{_escaped(value)}"' for key, value in attributes.items()])
    return Html(f"<{name}{written}>{join(inside)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    """The parts one after the other, escaped if they are not HTML."""
    return Html(between.join([part if isinstance(part, Html) else _escaped(part, quote=False) for part in parts]))


def _escaped(text: str, quote: bool = True) -> str:
    return escape(visible(text), quote)


def page(parts: Iterable[Html]) -> str:
    """What a notebook shows: the style sheet, and the parts below each other."""
    return f"<style>{STYLE}</style>\n{tag('div', *parts, class_='hloom')}"


def title(kind: str, name: str, about: str = "") -> Html:
    """The first line of a view."""
    return tag("div", tag("b", kind), " ", name, " ", tag("small", about), class_="title")


def facts(*pairs: tuple[str, str]) -> Html:
    """Names and values, below each other; without those that are empty."""
    rows = [tag("tr", tag("th", name), tag("td", value)) for name, value in pairs if value]
    return tag("table", tag("tbody", *rows), class_="facts") if rows else Html()


def table(shown: Table) -> Html:
    """A table; columns of numbers are aligned to the right, also without the style sheet."""

    styles = [{"style": "text-align:right"} if k in shown.numbers else {} for k in range(len(shown.headings))]

    def row(cells: tuple[str, ...], of: str) -> Html:
        return tag("tr", *[tag(of, naming_cells(cell), **style) for cell, style in zip(cells, styles, strict=True)])

    head = tag("thead", row(shown.headings, "th"))
    return tag("table", head, tag("tbody", *[row(cells, "td") for cells in shown.rows[:MOST_LINES]]))


def details(summary: str, *inside: str, is_open: bool = False) -> Html:
    """A part that unfolds when its first line is clicked."""
    return tag("details", tag("summary", summary), *inside, **({"open": "open"} if is_open else {}))


def figure(drawing: Drawing) -> Html:
    """A drawing."""
    return Html(to_svg(drawing))

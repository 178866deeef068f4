"""The elements that views are made of: tables, facts, figures, parts that unfold, and the style sheet.

A colour is mixed with the colour of the notebook's own text: it gets darker on a light page and lighter on a dark one,
so there is no list of themes. A notebook that removes the style sheet still shows text, tables and pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ..hlo.pictures.drawing import Drawing, to_svg
from ..hlo.support.tables import Table

STYLE = """
.hloom{font-size:13px;line-height:1.45;overflow-x:auto}
.hloom .title{margin:0 0 .4em;font-size:1.1em}
.hloom .title small,.hloom .faint{opacity:.65}
.hloom pre,.hloom code{font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:12px;
background:none;color:inherit;padding:0}
.hloom pre{margin:.2em 0 .6em;padding-left:.8em;border:0 solid color-mix(in srgb,currentColor 20%,transparent);
border-left-width:2px;white-space:pre;overflow-x:auto}
.hloom details{margin:.15em 0}
.hloom details>:not(summary){margin-left:1.1em}
.hloom summary{cursor:pointer;display:list-item}
.hloom table{border-collapse:collapse;margin:.2em 0 .6em;font-size:12px;color:inherit}
.hloom th,.hloom td{text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0;border:0;background:none;
max-width:none;white-space:normal}
.hloom thead th{border-bottom:1px solid color-mix(in srgb,currentColor 40%,transparent)}
.hloom tbody tr{background:none}
.hloom .facts th{font-weight:normal;opacity:.65;white-space:nowrap}
.hloom svg{max-width:100%;height:auto;display:block;margin:.4em 0}
.hloom .keyword{font-weight:bold}
.hloom .operation{color:color-mix(in srgb,#1668e3 70%,currentColor)}
.hloom .type{color:color-mix(in srgb,#0a8f5b 70%,currentColor)}
.hloom .string{color:color-mix(in srgb,#c2410c 70%,currentColor)}
.hloom .attribute{color:color-mix(in srgb,#9333ea 65%,currentColor)}
.hloom .comment{opacity:.65}
.hloom .removed{background:color-mix(in srgb,#e5484d 22%,transparent)}
.hloom .added{background:color-mix(in srgb,#30a46c 22%,transparent)}
""".strip()

MOST_LINES = 2000
"""Lines of one text. A notebook keeps what it shows in its file."""


class Html(str):
    """Text in which tags are tags. Any other text is escaped when it becomes a part of an element."""

    __slots__ = ()


def tag(name: str, *inside: str, **attributes: str) -> Html:
    """One element. `class_` is its class."""
    written = "".join([f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items()])
    return Html(f"<{name}{written}>{join(inside)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    """The parts one after the other, escaped if they are not HTML."""
    return Html(between.join([part if isinstance(part, Html) else escape(part, quote=False) for part in parts]))


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

    def row(cells: tuple[str, ...], of: str) -> Html:
        right = {"style": "text-align:right"}
        return tag("tr", *[tag(of, cell, **(right if k in shown.numbers else {})) for k, cell in enumerate(cells)])

    head = tag("thead", row(shown.headings, "th"))
    return tag("table", head, tag("tbody", *[row(cells, "td") for cells in shown.rows[:MOST_LINES]]))


def details(summary: str, *inside: str, is_open: bool = False) -> Html:
    """A part that unfolds when its first line is clicked."""
    return tag("details", tag("summary", summary), *inside, **({"open": "open"} if is_open else {}))


def figure(drawing: Drawing) -> Html:
    """A drawing."""
    return Html(to_svg(drawing))

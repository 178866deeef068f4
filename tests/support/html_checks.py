"""Checks of HTML that notebooks show: it is well-formed, has no script and loads nothing."""

from __future__ import annotations

from html.parser import HTMLParser

TAGS = {
    *("style", "div", "span", "b", "small", "pre", "code", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "title", "rect", "line", "text"),
}
"""The elements of all views."""
ATTRIBUTES = {
    *("class", "style", "title", "open", "xmlns", "role", "viewbox", "width", "height"),
    *("x", "y", "x1", "y1", "x2", "y2", "rx", "fill", "stroke", "stroke-width", "stroke-linecap"),
    *("font-family", "font-size", "font-weight", "text-anchor"),
}

class Checked(HTMLParser):
    """Checks that every element is closed and known; keeps the elements, the classes, and the text outside of style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.classes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == [], "elements that are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"an element {tag}"
        assert {name for name, _ in attrs} <= ATTRIBUTES, f"attributes of {tag}: {attrs}"
        self.tags.append(tag)
        for name, value in attrs:
            assert value is not None and (name == "xmlns" or "://" not in value), f"{name}={value!r}"
            if name == "class":
                self.classes |= set(value.split())

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

"""Coloured text: HLO, kernels, jaxprs. A language is a table of classes of the style sheet with regular expressions.

At each place of a text the first expression that matches wins; other text has no colour. Texts are printed by this
package, so the expressions need not know more than its printers write.
"""

from __future__ import annotations

import keyword
import re

from .page import MOST_LINES, Html, join, tag

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_LANGUAGES: dict[str, tuple[tuple[str, str], ...]] = {
    "hlo": (
        ("comment", r"/\*.*?\*/|//[^\n]*"),
        ("string", _STRING),
        ("type", r"\b[a-z]+[0-9]*[a-z0-9]*\[[^\]\n]*\](?:\{[^{}\n]*\})?|\btoken\[\]"),
        ("keyword", r"\b(?:HloModule|ENTRY|ROOT)\b"),
        ("operation", r"(?<= )[a-z][a-z0-9-]*(?=\()"),
        ("attribute", r"\b[A-Za-z_.]+(?==)"),
    ),
    "python": (
        ("comment", r"#[^\n]*"),
        ("string", rf"{_STRING}|'(?:[^'\\\n]|\\.)*'"),
        ("keyword", rf"\b(?:{'|'.join(keyword.kwlist)})\b"),
        ("operation", r"\b[A-Za-z_]\w*(?=\()"),
    ),
    "jaxpr": (
        ("string", r"'(?:[^'\\\n]|\\.)*'"),
        ("keyword", r"\b(?:lambda|let|in)\b"),
        ("type", r"(?<=:)[a-z]+[0-9]*\[[^\]\n]*\](?:\{[^{}\n]*\})?"),
        ("operation", r"(?<= = )[A-Za-z_]\w*"),
        ("attribute", r"\b[A-Za-z_]\w*(?==)"),
    ),
    "plain": (),
}
_PATTERNS = {
    name: re.compile("|".join([f"(?P<{kind}>{pattern})" for kind, pattern in kinds]) or r"(?!)")
    for name, kinds in _LANGUAGES.items()
}


def spans(text: str, language: str) -> Html:
    """The text with its tokens in spans. KeyError for an unknown language."""
    parts: list[str] = []
    done = 0
    for found in _PATTERNS[language].finditer(text):
        assert found.lastgroup is not None
        parts += [text[done : found.start()], tag("span", found[0], class_=found.lastgroup)]
        done = found.end()
    return join([*parts, text[done:]])


def code(text: str, language: str = "plain", most: int = MOST_LINES) -> Html:
    """A text as it is, in its colours: its first `most` lines, and how many are left out."""
    lines = text.rstrip("\n").split("\n")
    return tag("pre", spans("\n".join(lines[:most]), language), left_out(len(lines) - most))


def left_out(count: int) -> Html:
    """A line that says how many lines are not shown; nothing if there are none."""
    return tag("span", f"\n... {count:,} more lines: print it", class_="faint") if count > 0 else Html()

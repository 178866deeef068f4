"""Documents that choose their line breaks: a group is one line if it fits, else each of its breaks is a new line.

    group("[", nest(2, brk(""), "axes=(0,)", brk(), "keepdims=True"), brk(""), "]")

is ``[axes=(0,) keepdims=True]``, or three indented lines. A text may have a note (the user's line), which is printed at
the end of its line, behind all code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ..hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Break:
    """A new line, or `text` where the group is one line."""

    text: str = " "


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Doc, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """Its breaks are indented by `indent` more."""

    indent: int
    doc: Doc


@dataclass(frozen=True, slots=True)
class Group:
    doc: Doc


Doc: TypeAlias = Text | Break | Sequence | Nest | Group
WIDTH = 80
"""Of a line, as in JAX."""


def seq(*parts: Doc | str) -> Doc:
    """One after another."""
    return Sequence(tuple([Text(p) if isinstance(p, str) else p for p in parts]))


def brk(text: str = " ") -> Doc:
    return Break(text)


def nest(indent: int, *parts: Doc | str) -> Doc:
    return Nest(indent, seq(*parts))


def group(*parts: Doc | str) -> Doc:
    return Group(seq(*parts))


def join(separator: Doc, docs: Iterable[Doc]) -> Doc:
    """`docs` with the separator between neighbours."""
    parts: list[Doc] = []
    for doc in docs:
        parts += [separator, doc] if parts else [doc]
    return Sequence(tuple(parts))


def formatted(doc: Doc, width: int = WIDTH) -> str:
    """The text, with lines of at most `width` where breaks allow it."""
    return _with_notes(_lines(doc, width))


def _lines(doc: Doc, width: int) -> list[tuple[str, list[str]]]:
    """Each line with its notes."""
    lines: list[tuple[str, list[str]]] = []
    line, notes = "", []
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, is_flat, node = stack.pop()
        match node:
            case Text(text, note):
                line += text
                if note:
                    notes.append(note)
            case Break(text) if is_flat:
                line += text
            case Break():
                lines.append((line.rstrip() if not line.strip() else line, notes))
                line, notes = " " * indent, []
            case Sequence(parts):
                stack += [(indent, is_flat, p) for p in reversed(parts)]
            case Nest(more, inner):
                stack.append((indent + more, is_flat, inner))
            case Group(inner):
                stack.append((indent, is_flat or _fits(inner, width - len(line)), inner))
    lines.append((line, notes))
    return lines


def _fits(doc: Doc, room: int) -> bool:
    """Whether the document as one line has at most `room` characters."""
    stack = [doc]
    while stack and room >= 0:
        match stack.pop():
            case Text(text) | Break(text):
                room -= len(text)
            case Sequence(parts):
                stack += reversed(parts)
            case Nest(_, inner) | Group(inner):
                stack.append(inner)
    return room >= 0


def _with_notes(lines: list[tuple[str, list[str]]]) -> str:
    column = max((len(line) for line, notes in lines if notes), default=0)
    result = []
    for line, notes in lines:
        result.append(f"{line.ljust(column)} # {notes[0]}" if notes else line)
        result += [f"{' ' * column} # {note}" for note in notes[1:]]
    return "\n".join(result)

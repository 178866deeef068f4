"""The lines of the user's files that instructions name, with a few lines around them, and no others.

A program that was traced in this process names files that this process has run. The text of an HLO file may name any
file of this machine, and the page may be passed on: so of such a program only Python files of the current folder are
read.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..hlo.ir import HloInstruction, Metadata

AROUND = 6
"""Lines before and after one that is named. Parts with less than twice as many lines between them are one."""
MOST_LINES = 20_000
"""Lines of all parts together: metadata in a file may name any number."""


class Sources:
    """The parts of files, and where instructions are in them."""

    def __init__(self, is_traced: bool = True) -> None:
        """is_traced: the program was traced in this process."""
        self._is_traced = is_traced
        self._parts: list[dict[str, Any]] = []
        self._by_line: dict[tuple[str, int], int] = {}

    def read(self, instructions: Iterable[HloInstruction]) -> None:
        """Read the lines that the instructions name."""
        wanted: dict[str, set[int]] = {}
        for i in instructions:
            if i.metadata is not None and i.metadata.source_file and i.metadata.source_line > 0:
                wanted.setdefault(i.metadata.source_file, set()).add(i.metadata.source_line)
        left = MOST_LINES
        for path, lines in wanted.items():
            text = self._lines_of(path)
            for first, last in _parts(sorted(lines)):
                shown = text[first - 1 : last]
                if not shown or len(shown) > left:
                    continue
                left -= len(shown)
                self._by_line.update(dict.fromkeys([(path, k) for k in range(first, last + 1)], len(self._parts)))
                self._parts.append({"path": _shown(path), "first": first, "lines": shown})

    def _lines_of(self, path: str) -> list[str]:
        if not self._is_traced and not _is_near(path):
            return []
        return [line.rstrip("\n") for line in linecache.getlines(path)]

    def place(self, metadata: Metadata | None) -> tuple[int, int, int]:
        """(part or -1, line or 0, column or 0) of an instruction."""
        if metadata is None or not metadata.source_file:
            return -1, 0, 0
        found = self._by_line.get((metadata.source_file, metadata.source_line), -1)
        return found, metadata.source_line, getattr(metadata, "column", 0)

    def of_text(self, source: str) -> tuple[int, int]:
        """(part or -1, line or 0) of ``file:line``."""
        path, _, line = source.rpartition(":")
        if not path or not line.isdecimal():
            return -1, 0
        return self._by_line.get((path, int(line)), -1), int(line)

    def to_json(self) -> list[dict[str, Any]]:
        """The parts."""
        return self._parts


def _parts(lines: list[int]) -> list[tuple[int, int]]:
    """The first and the last line of each part."""
    found: list[tuple[int, int]] = []
    for line in lines:
        first, last = max(1, line - AROUND), line + AROUND
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def _shown(path: str) -> str:
    """The path from the current folder on, if the file is in it."""
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


def _is_near(path: str) -> bool:
    """True for a Python file in the current folder, links followed."""
    try:
        found = Path(path).resolve()
        return found.suffix == ".py" and found.is_relative_to(Path.cwd().resolve()) and found.is_file()
    except (OSError, ValueError):
        return False

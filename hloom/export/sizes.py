"""Sizes of dimensions in files: numbers, or expressions of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.symbolic.parser import parse_sizes
from ..hlo.symbolic.scope import SymbolicScope


class SizeReader:
    """Reads the sizes of one file, whose variables belong together. The constraints between them are not in the file:
    the program has them, as assertions."""

    def __init__(self) -> None:
        self._scope: SymbolicScope | None = None

    def shape(self, texts: Sequence[str]) -> tuple[Any, ...]:
        """The sizes with these texts. ValueError for one that is malformed."""
        return tuple([int(text) if text.isdecimal() else self._symbolic(text) for text in texts])

    def _symbolic(self, text: str) -> Any:
        if self._scope is None:
            self._scope = SymbolicScope()
        (size,) = parse_sizes(text, None, self._scope)
        return size

"""Memory that native code reads: words and bytes with fixed addresses, which live as long as their `Memory`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence


class Memory:
    """Blocks with fixed addresses."""

    def __init__(self) -> None:
        self._kept: list[object] = []

    def words(self, values: Sequence[int]) -> int:
        """The address of a new block of 8-byte words."""
        return self._keep(array("q", values or [0]))

    def numbers(self, values: Sequence[int]) -> int:
        """The address of a new block of 4-byte words."""
        return self._keep(array("i", values or [0]))

    def data(self, content: bytes) -> int:
        """The address of a new block with these bytes, aligned to 8, and zeros after them."""
        return self._keep(array("q", content + bytes(8 - len(content) % 8)))

    def _keep(self, block: array[int]) -> int:
        self._kept.append(block)
        return block.buffer_info()[0]

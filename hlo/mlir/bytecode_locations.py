"""The locations in MLIR bytecode: each is a name and a place, of those that it consists of.

A location may consist of others: a name of another, a place with its callers, several that are fused. Files of Python
programs nest hundreds of them, so they are read without recursion, and each once. Source: MLIR's
mlir/IR/BuiltinDialectBytecode.td.
"""

from __future__ import annotations

from collections.abc import Callable

from .builtin_bytecode import CALL_SITE, FILE, FUSED, FUSED_WITH_METADATA, NAMED, RANGE, UNKNOWN
from .bytecode_fields import Entry
from .tree import Location

_NOWHERE = Location()


class Locations:
    """The locations of a file, by their numbers. `entry`: the bytes of an attribute of the builtin dialect; None for an
    attribute that is no encoded one of this dialect."""

    def __init__(self, entry: Callable[[int, int], Entry | None]) -> None:
        self._entry = entry
        self._known: dict[int, Location] = {}

    def read(self, index: int, at: int) -> Location | None:
        """The first name, and the first place in a file, in the order callee, caller. None if there is neither."""
        if index not in self._known:
            self._read_all(index, at)
        found = self._known[index]
        return None if found == _NOWHERE else found

    def _read_all(self, index: int, at: int) -> None:
        """Reads a location after its parts. A location that contains itself says nothing."""
        left, begun = [index], set()
        while left:
            index = left[-1]
            location, parts = self._parts(index, at)
            missing = [part for part in parts if part not in self._known and part not in begun]
            if index in begun or not missing:
                self._known[index] = _merged([location, *(self._known.get(part, _NOWHERE) for part in parts)])
                left.pop()
            begun.add(index)
            left += missing if index not in self._known else []

    def _parts(self, index: int, at: int) -> tuple[Location, list[int]]:
        """The location itself, without its parts, and the numbers of its parts."""
        entry = self._entry(index, at)
        if entry is None:
            return _NOWHERE, []
        start, code = entry.at, entry.varint()
        if code == UNKNOWN:
            return _NOWHERE, []
        if code == FILE:
            return Location("", entry.text(), entry.varint(), entry.varint()), []
        if code == RANGE:  # up to four numbers, the line and the column first
            file = entry.text()
            line, column = (*entry.list(entry.varint), 0, 0)[:2]
            return Location("", file, line, column), []
        if code == NAMED:
            return Location(entry.text()), [entry.varint()]
        if code == CALL_SITE:
            return _NOWHERE, [entry.varint(), entry.varint()]
        if code in (FUSED, FUSED_WITH_METADATA):
            return _NOWHERE, entry.list(entry.varint)
        entry.at = start
        raise entry.error(f"attribute {index} is no location")


def _merged(locations: list[Location]) -> Location:
    name = next((each.name for each in locations if each.name), "")
    place = next((each for each in locations if each.file), _NOWHERE)
    return Location(name, place.file, place.line, place.column)

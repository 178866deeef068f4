"""Reading locations of MLIR text: `loc("f"("file.py":1:2))`. Source: MLIR's builtin dialect, "Location Attributes"."""

from __future__ import annotations

from .attribute_reader import AttributeReader
from .tree import Location


class LocationReader(AttributeReader):
    """Tokens that are read as types, attributes and locations."""

    def location(self) -> Location | None:
        """`loc(...)` if it comes next: the outermost name, and the innermost place in a file."""
        if self.next != "loc":
            return None
        self.index += 1
        self.expect("(")
        found = self._location_inside()
        self.expect(")")
        return found

    def _location_inside(self) -> Location:
        self.enter()
        token = self.next
        found = Location()
        if token == "unknown":
            self.index += 1
        elif token[:1] == "#":
            self.index += 1
            found = self.alias(token, self._location_definition, "the location")
        elif token == "fused":
            self.index += 1
            if self.next == "<":
                self.balanced(self.starts[self.index])
            self.expect("[")
            inner = self.comma_list("]", self._location_inside)
            found = _merged(inner)
        elif token == "callsite":
            self.index += 1
            self.expect("(")
            callee = self._location_inside()
            if self.word("'at'") != "at":
                raise self.expected("'at'", self.index - 1)
            if callee.file and self.next[:1] == "#":  # all callers may be hundreds, each in the next
                self.index += 1
                found = callee
            else:
                found = _merged([callee, self._location_inside()])
            self.expect(")")
        elif token[:1] == '"':
            name = self.string("a name or a file")
            if self.accept(":"):
                line = self.integer("a line")
                self.expect(":")
                column = self.integer("a column")
                if self.next == "to":  # a range
                    self.index += 1
                    while self.next == ":" or self.next.isdecimal():
                        self.index += 1
                found = Location("", name, line, column)
            elif self.accept("("):
                inside = self._location_inside()
                self.expect(")")
                found = Location(name, inside.file, inside.line, inside.column)
            else:
                found = Location(name)
        else:
            raise self.expected("a location")
        self.leave()
        return found

    def _location_definition(self) -> Location:
        found = self.location()
        if found is None:
            raise self.expected("a location")
        return found


def _merged(locations: list[Location]) -> Location:
    """One location that says what the first of several that know it say."""
    name = next((each.name for each in locations if each.name), "")
    place = next((each for each in locations if each.file), Location())
    return Location(name, place.file, place.line, place.column)

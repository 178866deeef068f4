"""The names of values in printed MLIR: `%0`, `%arg1`, `%cst_2`, as MLIR's printer chooses them (SSANameState).

A value with a name keeps it, with a number behind it if the name is taken. Others are numbered. All values of a region
are named before the values of its inner regions, and sibling regions use the same names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .tree import Operation, Region, Value


class Names:
    """The names of all values in an operation. `result_hints`: the names that an operation gives its results, one for
    each, or none; `argument_hint`: the name of an argument of its regions, by its number, or ""."""

    def __init__(
        self,
        operation: Operation,
        result_hints: Callable[[Operation], Sequence[str]],
        argument_hint: Callable[[Operation, int], str],
    ) -> None:
        self.texts: dict[Value, str] = {}
        self.counts: dict[Value, int] = {}
        """The first of several results that have one name, `%0:2`, with their number."""
        self._result_hints, self._argument_hint = result_hints, argument_hint
        self._used: set[str] = set()
        self._mine: list[str] = []
        self._value = self._argument = self._conflict = 0
        self._number_regions(operation)

    def _number_regions(self, operation: Operation) -> None:
        """Go through the regions, innermost last; the names of finished regions become free."""
        stack: list[tuple[Region | None, Operation, int, int, int, list[str]]]
        stack = [(region, operation, 0, 0, 0, []) for region in reversed(operation.regions)]
        while stack:
            region, owner, self._value, self._argument, self._conflict, names = stack.pop()
            if region is None:
                self._used.difference_update(names)
                continue
            self._mine = []
            self._number_region(region, owner)
            stack.append((None, owner, 0, 0, 0, self._mine))
            inner = [(each, each_region) for block in region.blocks for each in block.operations
                     for each_region in each.regions]  # fmt: skip
            for each, each_region in reversed(inner):
                stack.append((each_region, each, self._value, self._argument, self._conflict, []))

    def _number_region(self, region: Region, owner: Operation) -> None:
        for number, block in enumerate(region.blocks):
            for place, argument in enumerate(block.arguments):
                name = argument.name or ("" if number else self._argument_hint(owner, place))
                if name or number:
                    self._name(argument, name)
                else:
                    self.texts[argument] = self._unique(f"arg{self._argument}")
                    self._argument += 1
            for operation in block.operations:
                if operation.results:
                    self._number_results(operation)

    def _number_results(self, operation: Operation) -> None:
        results = operation.results
        hints = self._result_hints(operation)
        names = [result.name for result in results]
        if len(results) == 1 or any(names[1:]):
            hints = hints or [""] * len(results)
        elif any(names):
            hints = ()
        else:
            names = list(hints)
        if not hints:
            first = results[0]
            self._name(first, first.name)
            self.counts[first] = len(results)
            base = self.texts[first]
            for number, result in enumerate(results):
                self.texts[result] = f"{base}#{number}"
            return
        for result, name, hint in zip(results, names, hints):
            self._name(result, name or hint)

    def _name(self, value: Value, name: str) -> None:
        if name:
            self.texts[value] = self._unique(name)
        else:
            self._next(value)

    def _next(self, value: Value) -> None:
        self.texts[value] = f"%{self._value}"
        self._value += 1

    def _unique(self, name: str) -> str:
        if not _PLAIN.fullmatch(name):
            name = _sanitized(name)
        found = name
        while found in self._used:
            found = f"{name}_{self._conflict}"
            self._conflict += 1
        self._used.add(found)
        self._mine.append(found)
        return f"%{found}"


_PLAIN = re.compile(r"[A-Za-z_$.\-][A-Za-z0-9_$.\-]*")


def _sanitized(name: str) -> str:
    """The name with an underscore for each character that a name cannot have."""
    name = re.sub(r"[^A-Za-z0-9_$.\-]", "_", name)
    return name if name and not name[0].isdigit() else f"_{name}"

"""The tables of instructions and computations: each object is in its table once, however many stages have it.

Ids are positions in the tables. Texts that repeat are positions in a table of strings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..hlo.analyses.cost import operations_of
from ..hlo.analyses.traffic import traffic_of
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.rewrite_text import ShownNames
from ..hlo.text.attributes import attribute_texts
from ..hlo.text.literals import literal_text
from ..hlo.text.printer import further_texts
from .sources import Sources

FEW_ELEMENTS = 8
"""The most elements of a constant that is shown in full."""


class Strings:
    """Texts by their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """The texts, by number."""
        return list(self._numbers)


class Tables:
    """The instructions and computations of all stages."""

    def __init__(self, sources: Sources) -> None:
        self.strings: Strings = Strings()
        self._sources = sources
        self._ids: dict[HloInstruction, int] = {}
        self._computation_ids: dict[HloComputation, int] = {}
        self._names = ShownNames()
        self._costs: dict[HloComputation, Counter[str]] = {}
        self._shapes: dict[int, int] = {}
        self._columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "name", "opcode", "shape", "text", "operands", "called", "source", "line", "column", "op_name",
                "bytes", "flops", "origin",
            )
        }  # fmt: skip
        self._computations: list[dict[str, Any]] = []

    def id(self, instruction: HloInstruction) -> int:
        """The id of an instruction of a stage that was added."""
        return self._ids[instruction]

    def known(self, instructions: Iterable[HloInstruction]) -> list[int]:
        """The ids of those that are in some stage."""
        return [self._ids[i] for i in instructions if i in self._ids]

    def add(self, computations: Sequence[HloComputation], origins: Any) -> list[int]:
        """Add computations, callees first; their ids. `origins`: of the instructions that are new in this stage."""
        return [self._computation(c, origins) for c in computations]

    def _computation(self, computation: HloComputation, origins: Any) -> int:
        found = self._computation_ids.get(computation)
        if found is not None:
            return found
        ids = [self._instruction(i, origins) for i in computation.instructions]
        number = self._computation_ids[computation] = len(self._computations)
        self._computations.append(
            {
                "name": computation.name,
                "instructions": ids,
                "root": self._ids[computation.root],
                "parameters": [self._ids[p] for p in computation.parameters],
            }
        )
        return number

    def computation_id(self, computation: HloComputation) -> int:
        """The id of a computation that was added."""
        return self._computation_ids[computation]

    def _instruction(self, i: HloInstruction, origins: Any) -> int:
        found = self._ids.get(i)
        if found is not None:
            return found
        number = self._ids[i] = len(self._ids)
        source, line, column = self._sources.place(i.metadata)
        row: dict[str, Any] = {
            "name": i.name or i.opcode.value,
            "opcode": self.strings.number(i.opcode.value),
            "shape": self._shape(i),
            "text": self._text(i),
            "operands": [self._ids[o] for o in i.operands],
            "called": [self._computation_ids[c] for c in i.called_computations()],
            "source": source,
            "line": line,
            "column": column,
            "op_name": self.strings.number(i.metadata.op_name if i.metadata is not None else ""),
            "bytes": traffic_of(i),
            "flops": operations_of(i, self._costs),
            "origin": self.known(origins.get(i, ())),
        }
        for name, value in row.items():
            self._columns[name].append(value)
        return number

    def _shape(self, i: HloInstruction) -> int:
        """By identity first: many instructions share a shape."""
        key = id(i.shape)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = self.strings.number(i.shape.to_text())
        return found

    def _text(self, i: HloInstruction) -> str:
        if i.opcode is Opcode.CONSTANT:
            return literal_text(i.attributes.literal, FEW_ELEMENTS)
        if i.opcode is Opcode.PARAMETER:
            return str(i.attributes.number)
        return ", ".join([*attribute_texts(i, self._names.of_computation), *further_texts(i)])

    def to_json(self) -> dict[str, Any]:
        """The tables by name, as the page reads them."""
        return {
            "strings": self.strings.all(), "instructions": self._columns, "computations": self._computations,
        }  # fmt: skip

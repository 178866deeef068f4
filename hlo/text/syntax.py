"""What the parser reads, before names are resolved: plain records with the position of each in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..ir import InputOutputAlias, Metadata
from ..opcode import Opcode
from ..shape import Shape

FrontendAttributes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ComputationName:
    """A called computation, where an attribute names it."""

    name: str
    position: int


@dataclass(frozen=True, slots=True)
class ParsedOperand:
    name: str
    shape: Shape | None
    """Its type, where the text repeats it."""
    position: int


@dataclass(slots=True)
class ParsedInstruction:
    name: str
    position: int
    is_root: bool
    shape: Shape
    opcode: Opcode | None
    """None: a custom call that only annotates its operand, and is read as that operand."""
    operands: tuple[ParsedOperand, ...]
    values: dict[str, Any]
    """The opcode's own attributes by key, each as its reader in `attribute_reader.py` gives it."""
    metadata: Metadata | None = None
    frontend_attributes: FrontendAttributes = ()

    def called(self) -> list[ComputationName]:
        """The computations that the attributes name."""
        found: list[ComputationName] = []
        for value in self.values.values():
            if isinstance(value, ComputationName):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in value if isinstance(item, ComputationName))
        return found


@dataclass(slots=True)
class ParsedComputation:
    name: str
    position: int
    is_entry: bool
    signature: tuple[tuple[Shape, ...], Shape] | None
    """Types of the parameters and of the result, where the header gives them."""
    instructions: list[ParsedInstruction]


@dataclass(slots=True)
class ParsedModule:
    name: str
    position: int
    is_scheduled: bool = False
    aliases: tuple[InputOutputAlias, ...] = ()
    aliases_position: int = 0
    entry_layout: tuple[tuple[Shape, ...], Shape] | None = None
    entry_layout_position: int = 0
    frontend_attributes: FrontendAttributes = ()
    replica_count: int = 1
    num_partitions: int = 1
    computations: list[ParsedComputation] = field(default_factory=list)

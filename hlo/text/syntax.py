"""The parser's records, before names are resolved, each with its position in the text."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ..aliases import BufferDonor, InputOutputAlias
from ..metadata import Metadata
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from .codec import ComputationName

FrontendAttributes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ParsedOperand:
    name: str
    shape: Shape | None
    """Its type, if the text repeats it."""
    position: int


@dataclass(slots=True)
class ParsedInstruction:
    name: str
    """Operands refer to it by this name. A name from the parser has a space or a `#`, which no name in text has."""
    position: int
    is_root: bool
    shape: Shape | None
    """None: missing in the text; it is inferred."""
    opcode: Opcode
    operands: tuple[ParsedOperand, ...]
    values: dict[str, Any]
    """The opcode's own attributes by key, each as its codec reads it."""
    metadata: Metadata | None = None
    frontend_attributes: FrontendAttributes = ()
    annotations: dict[str, str] = field(default_factory=dict)
    predecessors: tuple[ParsedOperand, ...] = ()
    wrapped: Opcode | None = None
    """The opcode that `negate-start`, `negate-update` or `negate-done` wraps."""

    @property
    def given_name(self) -> str:
        """The name that the text gives it, or ""."""
        return "" if " " in self.name or "#" in self.name else self.name

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
    """Types of the parameters and of the result, if the header gives them."""
    instructions: list[ParsedInstruction]


@dataclass(slots=True)
class ParsedModule:
    name: str
    position: int
    is_scheduled: bool = False
    aliases: tuple[InputOutputAlias, ...] = ()
    aliases_position: int = 0
    donors: tuple[BufferDonor, ...] = ()
    donors_position: int = 0
    replica_count: int = 1
    num_partitions: int = 1
    annotations: dict[str, str] = field(default_factory=dict)
    entry_layout: tuple[tuple[Shape, ...], Shape] | None = None
    entry_layout_position: int = 0
    frontend_attributes: FrontendAttributes = ()
    computations: list[ParsedComputation] = field(default_factory=list)

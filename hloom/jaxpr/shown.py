"""The table SHOWN: for each HLO op, the equation that it is in a jaxpr. The families register their rules here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..hlo.ir import NO_ATTRIBUTES, HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.rules import RuleTable
from ..hlo.shape import Shape
from ..tracer import core
from ..tracer.aval import ShapedArray
from ..tracer.core import Value
from .atoms import Atom, Var
from .nodes import Effect
from .primitives import primitive


class Shown(NamedTuple):
    """An equation: a primitive by name, its inputs, its parameters."""

    primitive: Any
    """A name, or a primitive that a user has made."""
    operands: Sequence[Atom]
    params: dict[str, Any]
    effects: frozenset[Effect] | None = None
    """Its effects besides computing results, if they differ from its instruction's."""


class Body(Protocol):
    """The jaxpr in the making, as rules see it."""

    def emit(self, shown: Shown, avals: Sequence[ShapedArray], instruction: HloInstruction) -> list[Var]:
        """One more equation; returns its outputs."""

    def tuple_atoms(self, instruction: HloInstruction) -> list[Atom]:
        """The elements of a tuple."""

    def is_used(self, instruction: HloInstruction, index: int) -> bool:
        """Whether element `index` of an instruction's tuple is read."""

    def nested(self, computation: HloComputation) -> Any:
        """The ClosedJaxpr of a computation that an op calls."""


ShowRule: TypeAlias = Callable[[HloInstruction, Sequence[Atom], Body], "Shown | list[Atom]"]
"""rule(instruction, operands, body) -> the equation; or, where the rule has emitted equations itself, the atoms that
are its result. The operands of element-wise ops may be narrower than HLO's (`folding.py`)."""

SHOWN: RuleTable[ShowRule] = RuleTable("jaxpr")


class HloAttributes:
    """The attributes of an HLO op that JAX has no primitive for, as one parameter, and the type of its result."""

    __slots__ = ("attributes", "opcode", "shape")

    def __init__(self, opcode: Opcode, attributes: Any, shape: Shape) -> None:
        self.opcode, self.attributes, self.shape = opcode, attributes, shape

    def __str__(self) -> str:
        if self.attributes is NO_ATTRIBUTES:
            return "{}"
        shown = []
        for f in fields(self.attributes):
            value = getattr(self.attributes, f.name)
            shown.append(f"{f.name}={value.name if isinstance(value, HloComputation) else value}")
        return f"{{{', '.join(shown)}}}"

    __repr__ = __str__


def as_hlo(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """An equation with the op's own name, and HLO's attributes."""
    return Shown(hlo_name(i.opcode), operands, {"hlo": HloAttributes(i.opcode, i.attributes, i.shape)})


def hlo_name(opcode: Opcode) -> str:
    """The name of the primitive that is an HLO op as it is. JAX has a few primitives of such names, which say less."""
    name = opcode.value.replace("-", "_")
    return f"hlo_{name}" if opcode in _NAMED_AS_JAX else name


_NAMED_AS_JAX = frozenset(
    {Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.GATHER, Opcode.RAGGED_ALL_TO_ALL, Opcode.SCAN, Opcode.SCATTER}
)


def define_as_hlo(*opcodes: Opcode) -> None:
    """The primitives of ops that are, at least sometimes, shown as they are."""
    for opcode in opcodes:
        primitive(hlo_name(opcode), multiple_results=True)(bind_hlo)


def show_as_hlo(*opcodes: Opcode) -> None:
    """Ops that JAX has no primitive for."""
    for opcode in opcodes:
        SHOWN[opcode] = as_hlo
    define_as_hlo(*opcodes)


def bind_hlo(*operands: Value, hlo: HloAttributes) -> list[Value]:
    """An HLO op on values; its results."""
    if hlo.shape.is_tuple:
        return core.bind_multi(hlo.opcode, operands, hlo.attributes, shape=hlo.shape)
    return [core.bind(hlo.opcode, operands, hlo.attributes, shape=hlo.shape)]

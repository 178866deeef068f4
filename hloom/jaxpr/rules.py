"""The table SHOWN: for each HLO op, the equation that it is in a jaxpr. The families register their rules here.

And the broadcasts that are no equations: HLO's element-wise ops take operands of one shape, JAX's primitives also
scalars, and sizes of 1 beside others. So where HLO has ``broadcast`` before ``multiply``, a jaxpr has
``mul a 2.0:f32[]``. `plan_of` determines, for a computation, the inputs of each element-wise op in the jaxpr, and the
instructions that these need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, fields
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..hlo.effects import effects_of
from ..hlo.ir import NO_ATTRIBUTES, HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.rules import RuleTable
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer import core
from ..tracer.aval import ShapedArray
from ..tracer.core import Value
from .atoms import Atom, Var
from .nodes import Effect
from .primitives import F, primitive


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

    def result_avals(self, instruction: HloInstruction) -> list[ShapedArray]:
        """The types of the results of an instruction, with their divisions over a mesh."""

    def tuple_atoms(self, instruction: HloInstruction) -> list[Atom]:
        """The elements of a tuple."""

    def is_used(self, instruction: HloInstruction, index: int) -> bool:
        """Whether element `index` of an instruction's tuple is read."""

    def nested(self, computation: HloComputation) -> Any:
        """The ClosedJaxpr of a computation that an op calls."""

    def known(self, atom: Atom) -> Any:
        """The value of a constant that the function used from outside; None for all else."""

    def closed_over(self, computation: HloComputation, values: Sequence[Any]) -> Any:
        """The ClosedJaxpr of a computation that an op calls; `values` of its last parameters are its constants."""


ShowRule: TypeAlias = Callable[[HloInstruction, Sequence[Atom], Body], "Shown | list[Atom]"]
"""rule(instruction, operands, body) -> the equation; or, where the rule has emitted equations itself, the atoms that
are its result. The operands of element-wise ops may be narrower than HLO's (`rules.py`)."""

ParamsOf: TypeAlias = Callable[[HloInstruction], dict[str, Any]]

SHOWN: RuleTable[ShowRule] = RuleTable("jaxpr")


PRIMITIVES: dict[Opcode, str] = {}
"""By opcode: the primitive that it is always shown as."""


def show(opcode: Opcode, name: str, params: ParamsOf | None = None) -> None:
    """Declare that an op is an equation of the primitive `name`, on its operands. `params` gives the parameters. The
    primitive binds the function of its name in `hloom.lax`."""
    PRIMITIVES[opcode] = name
    SHOWN[opcode] = lambda i, operands, body: Shown(name, operands, {} if params is None else params(i))


def shows(opcode: Opcode, name: str, params: ParamsOf | None = None) -> Callable[[F], F]:
    """The same for a primitive that binds another function: a decorator of that function."""
    show(opcode, name, params)
    return primitive(name)


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


_O = Opcode
SPREADING = frozenset({
    _O.ADD, _O.AND, _O.ATAN2, _O.COMPARE, _O.DIVIDE, _O.MAXIMUM, _O.MINIMUM, _O.MULTIPLY, _O.OR, _O.POWER,
    _O.REMAINDER, _O.SHIFT_LEFT, _O.SHIFT_RIGHT_ARITHMETIC, _O.SHIFT_RIGHT_LOGICAL, _O.SUBTRACT, _O.XOR,
})  # fmt: skip
"""Ops with primitives that broadcast their operands."""


class Source(NamedTuple):
    """An input of an equation: the value of an instruction. `only_ranks`: of a broadcast only the new dimensions, with
    size 1, as JAX inserts them; the primitive does the rest."""

    instruction: HloInstruction
    only_ranks: bool = False


@dataclass(slots=True)
class Plan:
    """The inputs of a computation's equations, and the values that they need."""

    sources: dict[HloInstruction, tuple[Source, ...]] = field(default_factory=dict)
    """For instructions that take something else than their operands."""
    needed: set[Source] = field(default_factory=set)


def plan_of(computation: HloComputation) -> Plan:
    """The plan; the last instructions first, since an operand is needed only if an equation takes it."""
    plan = Plan()
    plan.needed.update(Source(i) for i in (computation.root, *effects_of(computation)))
    for i in reversed(computation.instructions):
        if Source(i, True) in plan.needed:
            plan.needed.add(Source(i.operands[0]))
        if Source(i) not in plan.needed:
            continue
        sources = tuple([Source(o) for o in i.operands])
        if i.opcode in SPREADING:
            folded = _folded(i)
            if folded != sources:
                plan.sources[i] = sources = folded
        elif i.opcode is Opcode.CLAMP:
            plan.sources[i] = sources = (_scalar(sources[0]), sources[1], _scalar(sources[2]))
        plan.needed.update(sources)
    return plan


def ranked(i: HloInstruction) -> tuple[int, ...]:
    """The result of a broadcast with size 1 in the dimensions that the operand lacks."""
    (operand,), dimensions = i.operands, i.attributes.dimensions
    sizes = dict(zip(dimensions, operand.shape.dimensions, strict=True))
    return tuple([sizes.get(d, 1) for d in range(i.shape.rank)])


def _scalar(source: Source) -> Source:
    i = source.instruction
    is_spread = i.opcode is Opcode.BROADCAST and not i.operands[0].shape.rank
    return Source(i.operands[0]) if is_spread else source


def _folded(i: HloInstruction) -> tuple[Source, ...]:
    """The inputs of `i`; together, the operands still have the result's shape."""
    sources = [_source(o) for o in i.operands]
    for k, operand in enumerate(i.operands):
        if _spread([_sizes(s) for s in sources]) == i.shape.dimensions:
            break
        sources[k] = Source(operand)
    return tuple(sources)


def _source(operand: HloInstruction) -> Source:
    if operand.opcode is not Opcode.BROADCAST:
        return Source(operand)
    (value,) = operand.operands
    sizes = ranked(operand)
    if value.opcode is Opcode.RESHAPE and value.operands[0].shape.dimensions == sizes:
        return Source(value.operands[0])
    if not value.shape.rank:
        return Source(value)
    return Source(operand, sizes != operand.shape.dimensions)


def _sizes(source: Source) -> tuple[int, ...]:
    return ranked(source.instruction) if source.only_ranks else source.instruction.shape.dimensions


def _spread(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Scalars, and sizes of 1, give way."""
    full = [s for s in shapes if s]
    return tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*full, strict=True)])

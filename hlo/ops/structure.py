"""Ops that give a program its structure: parameters, constants, tuples, fusions and barriers.

Source: XLA's ShapeInference and ShapeVerifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from ..instruction import Attributes, HloComputation
from ..literal import Literal
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BRACED, COMPUTATION, INTEGER, enumeration
from .checks import fail, require_declared, require_signature
from .declare import Attr
from .spec import OpSpec, Trait


class FusionKind(Enum):
    """The form of the loop nest that a fusion becomes. The names are XLA's; `kCustom` has another name in text."""

    LOOP = "kLoop"
    """Element by element over one iteration space."""
    INPUT = "kInput"
    """A loop nest with one or more reductions."""
    OUTPUT = "kOutput"
    CUSTOM = "kCustom"


@dataclass(frozen=True, slots=True)
class ParameterAttributes(Attributes):
    number: Annotated[int, Attr()]


@dataclass(frozen=True, slots=True)
class ConstantAttributes(Attributes):
    literal: Annotated[Literal, Attr()]


@dataclass(frozen=True, slots=True)
class GetTupleElementAttributes(Attributes):
    index: Annotated[int, Attr(INTEGER)]


@dataclass(frozen=True, slots=True)
class FusionAttributes(Attributes):
    kind: Annotated[FusionKind, Attr(enumeration(FusionKind))]
    calls: Annotated[HloComputation, Attr(COMPUTATION)]


@dataclass(frozen=True, slots=True)
class DomainAttributes(Attributes):
    """The kinds that separate two domains, as text: `{kind="sharding", entry={...}, exit={...}}`."""

    domain: Annotated[str, Attr(BRACED)]


def _parameter_rule(operands: Sequence[Shape], attributes: ParameterAttributes, declared: Shape | None) -> Shape:
    """c1: the type is declared; c2: the number is not negative."""
    if attributes.number < 0:
        fail(Opcode.PARAMETER, operands, f"number {attributes.number} must not be negative", 2)
    return require_declared(Opcode.PARAMETER, operands, declared, 1)


def _constant_rule(operands: Sequence[Shape], attributes: ConstantAttributes, declared: Shape | None) -> Shape:
    """The literal's type."""
    return attributes.literal.shape


def _tuple_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Any operands, tuples included."""
    return Shape.tuple(operands)


def _get_tuple_element_rule(
    operands: Sequence[Shape], attributes: GetTupleElementAttributes, declared: Shape | None
) -> Shape:
    """c1: the operand is a tuple; c2: it has the element."""
    elements = operands[0].tuple_shapes
    if elements is None:
        fail(Opcode.GET_TUPLE_ELEMENT, operands, "the operand must be a tuple", 1)
    if not 0 <= attributes.index < len(elements):
        fail(Opcode.GET_TUPLE_ELEMENT, operands, f"index {attributes.index} must be in [0, {len(elements)})", 2)
    return elements[attributes.index]


def _fusion_rule(operands: Sequence[Shape], attributes: FusionAttributes, declared: Shape | None) -> Shape:
    """c1: the fused computation's parameters have the operands' types."""
    require_signature(Opcode.FUSION, operands, attributes.calls, operands, 1)
    return attributes.calls.root.shape


def _opt_barrier_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """The operand, of any type: no instruction may be moved across it."""
    return operands[0]


def _domain_rule(operands: Sequence[Shape], attributes: DomainAttributes, declared: Shape | None) -> Shape:
    """The operand, of any type."""
    return operands[0]


_FAMILY = "structure"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.CONSTANT, _FAMILY, 0, ConstantAttributes, _constant_rule, Trait.ALIGNED),
    OpSpec(_O.FUSION, _FAMILY, None, FusionAttributes, _fusion_rule),
    OpSpec(_O.GET_TUPLE_ELEMENT, _FAMILY, 1, GetTupleElementAttributes, _get_tuple_element_rule, Trait.STRUCTURE),
    OpSpec(_O.OPT_BARRIER, _FAMILY, 1, Attributes, _opt_barrier_rule),
    OpSpec(_O.PARAMETER, _FAMILY, 0, ParameterAttributes, _parameter_rule, Trait.STRUCTURE | Trait.ALIGNED),
    OpSpec(_O.TUPLE, _FAMILY, None, Attributes, _tuple_rule, Trait.STRUCTURE),
    OpSpec(_O.DOMAIN, _FAMILY, 1, DomainAttributes, _domain_rule),
)

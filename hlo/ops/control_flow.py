"""Ops that run computations: call, while, conditional, scan.

Source: XLA's ShapeInference::InferCallShape, InferWhileShape, InferConditionalShape; ShapeVerifier::HandleScan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes, HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BOOLEAN, COMPUTATION, COMPUTATIONS, INTEGER, MARK, ONE_DIMENSION
from .checks import fail, require_signature
from .declare import Attr, Dims, Of, OneByOne
from .spec import OpSpec, Trait

TARGET_KEY = "hloom.custom_call_target"
"""The parameter of a composite that names a custom call which computes the same from the same operands, with the other
parameters as its configuration."""


@dataclass(frozen=True, slots=True)
class Composite:
    """Marks a call as an operation that HLO has no opcode for: its name and the data for its derivative.

    `parameters` are printed as the composite's attributes. `rule` is a Python object that the transformation of
    that name understands (a custom_jvp's rule, for example); it is compared by identity and not printed.
    """

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    rule: object = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class CallAttributes(Attributes):
    to_apply: Annotated[HloComputation, Attr(COMPUTATION)]
    composite: Annotated[Composite | None, Attr(MARK, key="is_composite")] = None
    """In text, its name and parameters are frontend attributes."""


@dataclass(frozen=True, slots=True)
class WhileAttributes(Attributes):
    condition: Annotated[HloComputation, Attr(COMPUTATION)]
    body: Annotated[HloComputation, Attr(COMPUTATION)]


def _takes_pred(instruction: HloInstruction) -> bool:
    return instruction.operands[0].shape.element_type is ElementType.PRED


_FOR_PRED = OneByOne(("true_computation", "false_computation"), COMPUTATION, _takes_pred)
"""XLA's parser accepts for an index only a list of branches, and for a pred only the two named computations."""


@dataclass(frozen=True, slots=True)
class ConditionalAttributes(Attributes):
    """Index k takes branch k; an index out of range takes the last. A PRED operand that is true takes branch 0."""

    branch_computations: Annotated[tuple[HloComputation, ...], Attr(COMPUTATIONS, one_by_one=_FOR_PRED)]


@dataclass(frozen=True, slots=True)
class ScanAttributes(Attributes):
    """Operands: N arrays, then M initial carries; `to_apply` takes N slices and M carries."""

    dimension: Annotated[int, Attr(ONE_DIMENSION, key="dimensions", dims=Dims(names=Of.OPERAND_0))]
    to_apply: Annotated[HloComputation, Attr(COMPUTATION, after="num_carries")]
    is_reverse: Annotated[bool, Attr(BOOLEAN)] = False
    is_associative: Annotated[bool | None, Attr(BOOLEAN)] = None
    num_carries: Annotated[int, Attr(INTEGER, always=True)] = 1


def _call_rule(operands: Sequence[Shape], attributes: CallAttributes, declared: Shape | None) -> Shape:
    """c1: the computation's parameters have the operands' types."""
    require_signature(Opcode.CALL, operands, attributes.to_apply, operands, 1)
    return attributes.to_apply.root.shape


def _while_rule(operands: Sequence[Shape], attributes: WhileAttributes, declared: Shape | None) -> Shape:
    """c1: condition and body take the operand; c2: the condition returns pred[]; c3: the body returns the operand's
    type."""
    state, condition, body = operands[0], attributes.condition, attributes.body
    require_signature(Opcode.WHILE, operands, condition, operands, 1)
    require_signature(Opcode.WHILE, operands, body, operands, 1)
    if condition.root.shape.element_type is not ElementType.PRED or condition.root.shape.dimensions:
        fail(Opcode.WHILE, operands, f"condition {condition.name} returns {condition.root.shape}, not pred[]", 2)
    if not body.root.shape.compatible(state):
        fail(Opcode.WHILE, operands, f"body {body.name} returns {body.root.shape}, not {state}", 3)
    return state


def _conditional_rule(operands: Sequence[Shape], attributes: ConditionalAttributes, declared: Shape | None) -> Shape:
    """Operands: the index, then one operand for each branch.

    c1: the index is pred[] or s32[]; c2: there is a branch, and exactly two for pred[]; c3: there is one operand for
    each branch; c4: each branch takes its operand; c5: all branches return one type.
    """
    branches = attributes.branch_computations
    if not operands or operands[0].dimensions or operands[0].element_type not in (ElementType.PRED, ElementType.S32):
        fail(Opcode.CONDITIONAL, operands, "the first operand must be pred[] or s32[]", 1)
    if not branches or (operands[0].element_type is ElementType.PRED and len(branches) != 2):
        fail(Opcode.CONDITIONAL, operands, f"{len(branches)} branches do not fit the index", 2)
    if len(operands) != len(branches) + 1:
        fail(Opcode.CONDITIONAL, operands, f"{len(branches)} branches need as many operands after the index", 3)
    result = branches[0].root.shape
    for branch, operand in zip(branches, operands[1:]):
        require_signature(Opcode.CONDITIONAL, operands, branch, [operand], 4)
        if not branch.root.shape.compatible(result):
            why = f"branch {branch.name} returns {branch.root.shape}, branch {branches[0].name} {result}"
            fail(Opcode.CONDITIONAL, operands, why, 5)
    return result


def _scan_rule(operands: Sequence[Shape], attributes: ScanAttributes, declared: Shape | None) -> Shape:
    """Operands: arrays, from which slices along `dimension` are taken, then carries. Result: arrays that consist of the
    computed slices along `dimension`, then the last carries; not a tuple if `to_apply` does not return one.

    c1: `num_carries` operands are carries; c2: the others are arrays with `dimension`, equally long along it; c3:
    `to_apply` takes their slices, without that dimension, and the carries; c4: it returns slices, which are arrays of
    rank `dimension` at least, and then the carries' types; c5: without arrays the declared result gives the length.
    """
    opcode, dimension, carries = Opcode.SCAN, attributes.dimension, attributes.num_carries
    if not 0 <= carries <= len(operands):
        fail(opcode, operands, f"num_carries is {carries}, and there are {len(operands)} operands", 1)
    arrays, initial = operands[: len(operands) - carries], operands[len(operands) - carries :]
    if any(a.is_tuple or not 0 <= dimension < a.rank for a in arrays):
        fail(opcode, operands, f"what is sliced must be arrays with a dimension {dimension}", 2)
    lengths = {a.dimensions[dimension] for a in arrays}
    if len(lengths) > 1:
        fail(opcode, operands, f"what is sliced along dimension {dimension} must be equally long", 2)
    slices = [Shape.array(a.element, a.dimensions[:dimension] + a.dimensions[dimension + 1 :]) for a in arrays]
    require_signature(opcode, operands, attributes.to_apply, [*slices, *initial], 3)
    root = attributes.to_apply.root.shape
    results = root.elements if root.is_tuple else (root,)
    made, last = results[: len(results) - carries], results[len(results) - carries :]
    if len(results) < carries or not all(a.compatible(b) for a, b in zip(last, initial, strict=True)):
        fail(opcode, operands, f"{attributes.to_apply.name} returns {root}, which does not end with the carries", 4)
    if dimension < 0 or any(m.is_tuple or m.rank < dimension for m in made):
        fail(opcode, operands, f"{attributes.to_apply.name} returns {root}: no slices along {dimension}", 4)
    if not lengths:
        first = declared.tuple_shapes[0] if declared is not None and declared.tuple_shapes else declared
        if not made or first is None or first.is_tuple or first.rank <= dimension:
            fail(opcode, operands, "without arrays the result must be declared, to tell the length", 5)
        lengths = {first.dimensions[dimension]}
    (length,) = lengths
    stacked = [Shape.array(m.element, (*m.dimensions[:dimension], length, *m.dimensions[dimension:])) for m in made]
    found = [*stacked, *last]
    return Shape.tuple(found) if root.is_tuple else found[0]


_FAMILY = "control_flow"

SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.CALL, _FAMILY, None, CallAttributes, _call_rule, Trait.CONTROL_FLOW),
    OpSpec(Opcode.CONDITIONAL, _FAMILY, None, ConditionalAttributes, _conditional_rule, Trait.CONTROL_FLOW),
    OpSpec(Opcode.WHILE, _FAMILY, 1, WhileAttributes, _while_rule, Trait.CONTROL_FLOW),
    OpSpec(Opcode.SCAN, _FAMILY, None, ScanAttributes, _scan_rule, Trait.CONTROL_FLOW),
)

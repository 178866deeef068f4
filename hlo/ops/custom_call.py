"""custom-call: a call of code that is known by name only.

Source: the section "CustomCall" of the operation semantics; XLA's HloVerifier::HandleCustomCall.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from ..aliases import OutputOperandAlias
from ..instruction import Attributes, HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BACKEND_CONFIG, BOOLEAN, COMPUTATION, COMPUTATIONS, SHAPES, STRING, enumeration
from ..text.codecs_devices import OUTPUT_OPERAND_ALIASES
from .checks import fail, require_declared
from .declare import Attr, OneByOne
from .spec import OpSpec, Trait


class CustomCallSchedule(Enum):
    NONE = "SCHEDULE_NONE"
    EARLIEST = "SCHEDULE_EARLIEST"
    LATEST = "SCHEDULE_LATEST"


class CustomCallApiVersion(Enum):
    UNSPECIFIED = "API_VERSION_UNSPECIFIED"
    ORIGINAL = "API_VERSION_ORIGINAL"
    STATUS_RETURNING = "API_VERSION_STATUS_RETURNING"
    STATUS_RETURNING_UNIFIED = "API_VERSION_STATUS_RETURNING_UNIFIED"
    TYPED_FFI = "API_VERSION_TYPED_FFI"


def _has_config(instruction: HloInstruction) -> bool:
    attributes: CustomCallAttributes = instruction.attributes
    return bool(attributes.backend_config) or attributes.api_version is CustomCallApiVersion.TYPED_FFI


@dataclass(frozen=True, slots=True)
class CustomCallAttributes(Attributes):
    """A call of the function `custom_call_target`, which is looked up in the registry of custom calls."""

    custom_call_target: Annotated[str, Attr(STRING)]
    backend_config: Annotated[
        str, Attr(BACKEND_CONFIG, always=True, when=_has_config, after="api_version")
    ] = ""
    """For API_VERSION_TYPED_FFI an MLIR dictionary, else any text."""
    api_version: Annotated[
        CustomCallApiVersion, Attr(enumeration(CustomCallApiVersion), after="schedule")
    ] = CustomCallApiVersion.ORIGINAL
    has_side_effect: Annotated[bool, Attr(BOOLEAN, key="custom_call_has_side_effect")] = False
    callees: Annotated[
        tuple[HloComputation, ...],
        Attr(COMPUTATIONS, key="called_computations", one_by_one=OneByOne(("to_apply",), COMPUTATION)),
    ] = ()
    operand_layout_constraints: Annotated[tuple[Shape, ...] | None, Attr(SHAPES, after="custom_call_target")] = None
    output_to_operand_aliasing: Annotated[tuple[OutputOperandAlias, ...], Attr(OUTPUT_OPERAND_ALIASES)] = ()
    schedule: Annotated[CustomCallSchedule, Attr(enumeration(CustomCallSchedule))] = CustomCallSchedule.NONE
    function: Annotated[object, Attr()] = None
    """A Python function that this very call runs, in place of a registered one (`custom_calls.HostFunction`). It is not
    printed: a module that was read from text has none. It lives as long as the programs that call it."""


_O = Opcode.CUSTOM_CALL


def _custom_call_rule(operands: Sequence[Shape], attributes: CustomCallAttributes, declared: Shape | None) -> Shape:
    """The declared shape. Operands and results are checked when the call is bound to its target.

    c1: the result is declared; c2: the target has a name; c3: layouts are constrained for all operands or for none; c4:
    each constraint has its operand's type; c5: an alias names a part of the result and a part of an operand; c6: both
    parts have one type; c7: no part of the result is aliased twice.
    """
    declared = require_declared(_O, operands, declared, 1)
    if not attributes.custom_call_target:
        fail(_O, operands, "the name of the target is empty", 2)
    constraints = attributes.operand_layout_constraints
    if constraints is not None:
        if len(constraints) != len(operands):
            why = f"there are {len(constraints)} operand layout constraints for {len(operands)} operands"
            fail(_O, operands, why, 3)
        for position, (constraint, operand) in enumerate(zip(constraints, operands)):
            if not constraint.compatible(operand):
                fail(_O, operands, f"operand {position} is {operand}, its layout constraint {constraint}", 4)
    seen = set()
    for alias in attributes.output_to_operand_aliasing:
        result = _at(declared, alias.output_index)
        source = _at(operands[alias.operand], alias.operand_index) if 0 <= alias.operand < len(operands) else None
        if result is None or source is None:
            indices = f"output {list(alias.output_index)} with operand {alias.operand} {list(alias.operand_index)}"
            fail(_O, operands, f"the aliasing of {indices} of {declared}: there is none of that index", 5)
        if not result.compatible(source):
            fail(_O, operands, f"the aliased output is {result}, the operand {source}", 6)
        if alias.output_index in seen:
            fail(_O, operands, f"output {list(alias.output_index)} is aliased twice", 7)
        seen.add(alias.output_index)
    return declared


def _at(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """The part of a shape at `index`; None if there is none."""
    for position in index:
        if shape.tuple_shapes is None or not 0 <= position < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[position]
    return shape


SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O, "custom_call", None, CustomCallAttributes, _custom_call_rule, Trait.APPLIES | Trait.EXPENSIVE),
)

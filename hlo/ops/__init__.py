"""The definition of each opcode: one `OpSpec` for each opcode, in the file of its family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..opcode import Opcode
from . import (
    asynchronous,
    collective,
    control_flow,
    convolution,
    custom_call,
    dot,
    dynamic_size,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    random,
    reduce,
    sort,
    structure,
    window,
)
from .spec import OpSpec, ShapeRule, Trait

if TYPE_CHECKING:
    from ..instruction import HloInstruction

__all__ = ["FAMILY", "SPECS", "OpSpec", "ShapeRule", "Trait", "has_trait", "is_elementwise", "spec_of"]

SPECS: dict[Opcode, OpSpec] = {}
FAMILY: dict[Opcode, str] = {}
"""The name of the file of each opcode's family."""
_FAMILIES = (
    elementwise, movement, indexing, sort, reduce, window, dot, convolution, normalization, linalg, random,
    control_flow, structure, dynamic_size, custom_call, asynchronous, collective,
)  # fmt: skip
for _family in _FAMILIES:
    for _spec in _family.SPECS:
        assert _spec.opcode not in SPECS, f"two specs for {_spec.opcode}"
        SPECS[_spec.opcode] = _spec
        FAMILY[_spec.opcode] = _family.__name__.rpartition(".")[2]
assert set(SPECS) == set(Opcode), f"opcodes without a spec: {set(Opcode) - set(SPECS)}"


_TRAITS: dict[Opcode, int] = {opcode: spec.traits.value for opcode, spec in SPECS.items()}
"""The traits as numbers: testing a Flag runs Python code, which is slow."""
_ELEMENTWISE: int = Trait.ELEMENTWISE.value


def spec_of(opcode: Opcode) -> OpSpec:
    """The declaration of `opcode`."""
    return SPECS[opcode]


def is_elementwise(instruction: HloInstruction) -> bool:
    """True where an element of the result follows from the operands' elements at the same place. A bitcast between
    types of one width is that, too; between others it makes several elements of one, or one of several."""
    opcode = instruction.opcode
    if opcode is Opcode.BITCAST_CONVERT:
        return instruction.shape.dimensions == instruction.operands[0].shape.dimensions
    return _TRAITS[opcode] & _ELEMENTWISE != 0


def has_trait(opcode: Opcode, trait: Trait) -> bool:
    """True when `opcode` has (all of) `trait`."""
    bits: int = trait._value_
    return _TRAITS[opcode] & bits == bits

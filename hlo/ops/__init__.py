"""What each opcode is: one `OpSpec` for each opcode, in the file of its family."""

from __future__ import annotations

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

__all__ = ["SPECS", "OpSpec", "ShapeRule", "Trait", "has_trait", "spec_of"]

SPECS: dict[Opcode, OpSpec] = {}
_FAMILIES = (
    elementwise, movement, indexing, sort, reduce, window, dot, convolution, normalization, linalg, random,
    control_flow, structure, dynamic_size, custom_call, asynchronous, collective,
)  # fmt: skip
for _family in _FAMILIES:
    for _spec in _family.SPECS:
        assert _spec.opcode not in SPECS, f"two specs for {_spec.opcode}"
        SPECS[_spec.opcode] = _spec
assert set(SPECS) == set(Opcode), f"opcodes without a spec: {set(Opcode) - set(SPECS)}"


_TRAITS: dict[Opcode, int] = {opcode: spec.traits.value for opcode, spec in SPECS.items()}
"""The traits as numbers: testing a Flag runs Python code, which is slow."""


def spec_of(opcode: Opcode) -> OpSpec:
    """The declaration of `opcode`."""
    return SPECS[opcode]


def has_trait(opcode: Opcode, trait: Trait) -> bool:
    """True when `opcode` has (all of) `trait`."""
    bits: int = trait._value_
    return _TRAITS[opcode] & bits == bits

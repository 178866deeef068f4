"""OpSpec: the declaration of each opcode. They are in `ops/<family>.py`; `ops/__init__` collects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Flag, auto
from typing import Any

from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass

ShapeRule = Callable[[Sequence[Shape], Any, "Shape | None"], Shape]
"""rule(operand shapes, attributes, declared shape or None) -> result shape; ShapeError with a label if ill-formed.

If the operands do not determine the result type (parameter, convert, reshape, broadcast, iota, ...), a rule needs
`declared` and checks it; others compute the result, and `make_instruction` and the verifier compare both.
"""


class Trait(Flag):
    """Properties of an op that passes may rely on."""

    NONE = 0
    ELEMENTWISE = auto()
    """Result element i depends on element i of each operand (or on scalars, for clamp and select)."""
    COMMUTATIVE = auto()
    ALIGNED = auto()
    """Dimension d of the result corresponds to dimension d of each operand array of the same rank. The op treats all
    dimensions alike, except those that an attribute is declared to name. (ELEMENTWISE implies this too.)"""
    MOVEMENT = auto()
    """Result elements are copies of operand elements."""
    SIDE_EFFECT = auto()
    """Does more than compute a result; `hlo/effects.py` also knows the custom calls and callers that do."""
    STRUCTURE = auto()
    """parameter, tuple, get-tuple-element: nothing to compute."""
    CONTROL_FLOW = auto()
    APPLIES = auto()
    """Its called computations are applied to scalars (reducers, comparators): they have no buffers, and no pass looks
    for loop nests in them."""
    EXPENSIVE = auto()
    """Worth computing once rather than in each consumer (transcendental functions, divisions)."""


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One opcode's declaration: its family (the file name in every layer), arity, attributes, traits and shape rule."""

    opcode: Opcode
    family: str
    arity: int | None
    """Number of operands; None: any number, the shape rule checks it."""
    attributes: type[Attributes]
    shape_rule: ShapeRule
    traits: Trait = Trait.NONE
    operands_per_array: int = 1
    """Operands for each array of an op on N arrays: 2 for reduce, which has N init values. See `Of.ARRAYS`."""
    last_dimensions: int = 0
    """How many of its arrays' last dimensions the op works along; it does the same at each index of the others."""
    starts: int | None = None
    """The number of the first of the start indices: scalars, one for each dimension of operand 0."""

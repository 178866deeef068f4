"""OpSpec: what is declared once about each opcode. The rows are in `ops/<family>.py`; `ops/__init__` gathers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any

from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape

ShapeRule = Callable[[Sequence[Shape], Any, "Shape | None"], Shape]
"""rule(operand shapes, attributes, declared shape or None) -> result shape; ShapeError with a label if ill-formed.

Ops whose result type is a choice (parameter, convert, reshape, broadcast, iota, ...) need `declared` and check it;
the others compute the result, and a declared shape is compared with it by `make_instruction` and the verifier.
"""


class Trait(Flag):
    """What passes may assume of an op."""

    NONE = 0
    ELEMENTWISE = auto()
    """Result element i depends on element i of each operand (or on scalars, for clamp and select)."""
    COMMUTATIVE = auto()
    ALIGNED = auto()
    """Dimension d of the result lies along dimension d of each operand array of its rank. Numbers of dimensions mean
    nothing to the op but where an attribute declares that it speaks of them. (ELEMENTWISE says so too.)"""
    MOVEMENT = auto()
    """Result elements are copies of operand elements."""
    SIDE_EFFECT = auto()
    """Acts on more than its result; see `hlo/effects.py`, which also knows the custom calls and callers that do."""
    STRUCTURE = auto()
    """parameter, tuple, get-tuple-element: nothing to compute."""
    CONTROL_FLOW = auto()
    APPLIES = auto()
    """Its called computations are applied to scalars inside of it (reducers, comparators): they have no buffers, and
    no pass looks for loop nests in them."""
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
    """Of an op on N arrays: 2 for reduce with its N init values, say. See `Of.ARRAYS`."""
    last_dimensions: int = 0
    """The op works along so many last dimensions of its arrays, and does the same at each place of those before."""
    starts: int | None = None
    """The operand from which on there is one scalar for each dimension of operand 0."""

"""Random numbers. Source: the sections "RngBitGenerator", "RngUniform" and "RngNormal" of the operation semantics;
XLA's RngBitGeneratorExpander and RngGetAndUpdateState."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import INTEGER, enumeration
from .checks import FLOATS, INTEGERS, PRED, array_of, fail, names, require_declared
from .declare import Attr
from .spec import OpSpec, Trait


class RandomAlgorithm(Enum):
    DEFAULT = "rng_default"
    THREEFRY = "rng_three_fry"
    PHILOX = "rng_philox"


@dataclass(frozen=True, slots=True)
class RngBitGeneratorAttributes(Attributes):
    """Operand: the state (u64[2] for threefry). Result: (new state, random bits)."""

    algorithm: Annotated[RandomAlgorithm, Attr(enumeration(RandomAlgorithm))]


class RandomDistribution(Enum):
    UNIFORM = "rng_uniform"
    """Operands: the lowest value, and the upper bound, which is excluded."""
    NORMAL = "rng_normal"
    """Operands: mean and standard deviation."""
    BERNOULLI = "rng_bernoulli"
    """Operand: the probability of 1. From the seeds, the four pages of XLA's first documentation (2017); XLA today has
    no text for it."""


@dataclass(frozen=True, slots=True)
class RngAttributes(Attributes):
    distribution: Annotated[RandomDistribution, Attr(enumeration(RandomDistribution))]


@dataclass(frozen=True, slots=True)
class RngGetAndUpdateStateAttributes(Attributes):
    """The result is the process's 128-bit state (u64[2], low word first, or u64[1]) before `delta` is added to it."""

    delta: Annotated[int, Attr(INTEGER)]


_STATE_SIZES = {
    RandomAlgorithm.DEFAULT: (2, 3),
    RandomAlgorithm.THREEFRY: (2,),
    RandomAlgorithm.PHILOX: (2, 3),
}


def _rng_bit_generator_rule(
    operands: Sequence[Shape], attributes: RngBitGeneratorAttributes, declared: Shape | None
) -> Shape:
    """Operand: the state (key, counter). Result: (new state, bits).

    c1: the state is u64[2] for threefry, u64[2] or u64[3] for philox and default; c2: the declared result is a tuple of
    the state's type and an array of integers.
    """
    state = operands[0]
    sizes = _STATE_SIZES[attributes.algorithm]
    if state.element_type is not ElementType.U64 or state.dimensions not in [(size,) for size in sizes]:
        expected = " or ".join(f"u64[{size}]" for size in sizes)
        fail(Opcode.RNG_BIT_GENERATOR, operands, f"the state of {attributes.algorithm.value} must be {expected}", 1)
    declared = require_declared(Opcode.RNG_BIT_GENERATOR, operands, declared, 2)
    results = declared.tuple_shapes or ()
    if len(results) != 2 or not results[0].compatible(state) or results[1].element_type not in INTEGERS:
        fail(Opcode.RNG_BIT_GENERATOR, operands, f"the result must be ({state}, integers[...]), not {declared}", 2)
    return declared


_OPERANDS = {RandomDistribution.UNIFORM: 2, RandomDistribution.NORMAL: 2, RandomDistribution.BERNOULLI: 1}
_RESULTS = {
    RandomDistribution.UNIFORM: INTEGERS | FLOATS | PRED,
    RandomDistribution.NORMAL: FLOATS,
    RandomDistribution.BERNOULLI: INTEGERS | FLOATS | PRED,
}


def _rng_rule(operands: Sequence[Shape], attributes: RngAttributes, declared: Shape | None) -> Shape:
    """c1: the result is declared, as an array; c2: there are as many operands as the distribution has parameters
    (uniform: low, high; normal: mean, standard deviation; bernoulli: probability); c3: all are scalars; c4: of the
    result's element type (bernoulli: floats); c5: the distribution has such results."""
    declared = require_declared(Opcode.RNG, operands, declared, 1)
    result = declared.element_type
    if result is None:
        fail(Opcode.RNG, operands, f"the result must be an array, not {declared}", 1)
    distribution = attributes.distribution
    if len(operands) != _OPERANDS[distribution]:
        fail(Opcode.RNG, operands, f"{distribution.value} has {_OPERANDS[distribution]} parameters", 2)
    for operand in operands:
        if operand.element_type is None or operand.dimensions:
            fail(Opcode.RNG, operands, "the distribution's parameters must be scalars", 3)
        if distribution is RandomDistribution.BERNOULLI:
            if operand.element_type not in FLOATS:
                fail(Opcode.RNG, operands, "a probability must be a float", 4)
        elif operand.element_type is not result:
            fail(Opcode.RNG, operands, f"parameters must have the result's element type, {result.value}", 4)
    if result not in _RESULTS[distribution]:
        fail(Opcode.RNG, operands, f"results of {distribution.value} are {names(_RESULTS[distribution])}", 5)
    return array_of(result, declared.dimensions)


def _state_rule(
    operands: Sequence[Shape], attributes: RngGetAndUpdateStateAttributes, declared: Shape | None
) -> Shape:
    """c1: the delta is not negative."""
    if attributes.delta < 0:
        fail(_STATE, operands, f"delta {attributes.delta} must not be negative", 1)
    return array_of(ElementType.U64, (2,))


_STATE = Opcode.RNG_GET_AND_UPDATE_STATE
_FAMILY = "random"

SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.RNG_BIT_GENERATOR, _FAMILY, 1, RngBitGeneratorAttributes, _rng_bit_generator_rule, Trait.EXPENSIVE),
    OpSpec(Opcode.RNG, _FAMILY, None, RngAttributes, _rng_rule, Trait.SIDE_EFFECT),
    OpSpec(_STATE, _FAMILY, 0, RngGetAndUpdateStateAttributes, _state_rule, Trait.SIDE_EFFECT),
)

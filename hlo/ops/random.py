"""Random bits. Source: the section "RngBitGenerator" of the operation semantics; XLA's RngBitGeneratorExpander."""

from __future__ import annotations

from collections.abc import Sequence

from ..attributes import RandomAlgorithm, RngAttributes, RngBitGeneratorAttributes, RngGetAndUpdateStateAttributes
from ..element_type import ElementType
from ..opcode import Opcode
from ..shape import Shape
from .checks import INTEGERS, fail, not_checked, require_declared
from .spec import OpSpec, Trait

_STATE_SIZES = {
    RandomAlgorithm.DEFAULT: (2, 3),
    RandomAlgorithm.THREEFRY: (2,),
    RandomAlgorithm.PHILOX: (2, 3),
}


def _rng_bit_generator_rule(
    operands: Sequence[Shape], attributes: RngBitGeneratorAttributes, declared: Shape | None
) -> Shape:
    """Operand: the state (key, counter). Result: (new state, bits).

    c1: the state is u64[2] for threefry, u64[2] or u64[3] for philox; c2: the declared result is a tuple of the
    state's type and an array of integers.
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


_STATE = Opcode.RNG_GET_AND_UPDATE_STATE

SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.RNG_BIT_GENERATOR, "random", 1, RngBitGeneratorAttributes, _rng_bit_generator_rule, Trait.EXPENSIVE),
    OpSpec(Opcode.RNG, "random", None, RngAttributes, not_checked, Trait.SIDE_EFFECT),
    OpSpec(_STATE, "random", 0, RngGetAndUpdateStateAttributes, not_checked, Trait.SIDE_EFFECT),
)

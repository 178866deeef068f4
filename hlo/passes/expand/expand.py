"""Expansion: ops for which a backend has no code are written with ops for which it has.

Each rule is a function from an instruction to its replacement, or None where it has nothing to do. A backend gives the
pass its table: `EXPANSIONS`, what it adds, and less what it does itself. Source of the idea: XLA's float-normalization,
dot-decomposer and rng-bit-generator-expander.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...builder import make_instruction
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...shape import Shape
from ..rewrite import map_computations, rewrite_computation
from ..simplify.reducers import binary_reducer
from .asynchronous import ASYNCHRONOUS
from .collective import COLLECTIVE
from .convolution import (
    batch_groups_as_feature_groups,
    convolution_in_one_type,
    convolution_of_nothing,
    phases_of_dilated_input,
    reversed_window,
)
from .custom_call import annotation, topk, unwritten_memory
from .dot import ragged_dot, scaled_dot
from .elementwise import complex_extremum, stochastic_convert
from .indexing import gather_of_empty_slices
from .map import mapped
from .normalization import batch_norm_grad, batch_norm_inference, batch_norm_training
from .random import rng, rng_bit_generator
from .scan import scan
from .small_types import COMPUTED_WIDER, bitcast_of_other_width, bitcast_to_other_type, computed_wider, wider_type
from .sort import topk_by_sort
from .window import window_of_everything

Expansion = Callable[[HloInstruction], HloInstruction | None]

_HALF = (ElementType.F16, ElementType.BF16)


@dataclass(frozen=True)
class Expand:
    """The pass: every rule on every instruction."""

    rules: Mapping[Opcode, tuple[Expansion, ...]] = field(hash=False)
    """By opcode: the rules that are tried, in this order."""
    name: str = "expand"

    def __call__(self, module: HloModule) -> HloModule:
        """Again, until nothing is left to do: what a rule writes may be something that another rule rewrites."""
        while True:
            expanded_module = map_computations(
                module, lambda c: rewrite_computation(c, lambda old, moved: self.expanded(moved) or moved)
            )
            if expanded_module is module:
                return module
            module = expanded_module

    def expanded(self, instruction: HloInstruction) -> HloInstruction | None:
        """The replacement of one instruction by the first of its opcode's rules that has one."""
        for rule in self.rules.get(instruction.opcode, ()):
            replacement = rule(instruction)
            if replacement is not None:
                return replacement
        return None


def _converted(operand: HloInstruction, element_type: ElementType) -> HloInstruction:
    if operand.shape.element is element_type:
        return operand
    shape = Shape.array(element_type, operand.shape.dimensions)
    return make_instruction(Opcode.CONVERT, (operand,), shape=shape)


_MONOIDS = (Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM)


def reduce_in_wider_type(reduce: HloInstruction) -> HloInstruction | None:
    """Sums, products and extrema (in windows too) of f16, bf16 and smaller floats: accumulate in f32, round once. As
    XLA's CPU compiler does, except that it rounds sums of f8 at every step. Integers of less than a byte are
    accumulated in a byte."""
    element = reduce.operands[0].shape.element
    if len(reduce.operands) != 2 or not (element in _HALF or element.is_small):
        return None
    opcode = _monoid(reduce.attributes.to_apply)
    if opcode is None:
        return None
    wide = ElementType.F32 if element.is_floating else wider_type(element)
    operands = [_converted(o, wide) for o in reduce.operands]
    attributes = replace(reduce.attributes, to_apply=binary_reducer(opcode, wide))
    return _converted(make_instruction(reduce.opcode, operands, attributes), element)


def _monoid(reducer: HloComputation) -> Opcode | None:
    """The op that a reducer of two parameters is; small types may have been converted for it and back."""
    root = reducer.root
    wide = root.opcode is Opcode.CONVERT and root.shape.element.is_small
    root = root.operands[0] if wide else root
    if root.opcode not in _MONOIDS:
        return None
    sources = {o.operands[0] if wide and o.opcode is Opcode.CONVERT else o for o in root.operands}
    return root.opcode if sources == set(reducer.parameters) else None


EXPANSIONS: dict[Opcode, tuple[Expansion, ...]] = {
    **dict.fromkeys(COMPUTED_WIDER, (computed_wider,)),
    Opcode.MAXIMUM: (computed_wider, complex_extremum),
    Opcode.MINIMUM: (computed_wider, complex_extremum),
    Opcode.MAP: (mapped,),
    Opcode.STOCHASTIC_CONVERT: (stochastic_convert,),
    Opcode.BATCH_NORM_GRAD: (batch_norm_grad,),
    Opcode.BATCH_NORM_INFERENCE: (batch_norm_inference,),
    Opcode.BATCH_NORM_TRAINING: (batch_norm_training,),
    Opcode.BITCAST: (bitcast_to_other_type,),
    Opcode.BITCAST_CONVERT: (bitcast_of_other_width,),
    Opcode.CONVOLUTION: (
        convolution_of_nothing,
        convolution_in_one_type,
        batch_groups_as_feature_groups,
        reversed_window,
        phases_of_dilated_input,
    ),
    Opcode.CUSTOM_CALL: (annotation, topk, unwritten_memory),
    Opcode.GATHER: (gather_of_empty_slices,),
    Opcode.RAGGED_DOT: (ragged_dot,),
    Opcode.SCALED_DOT: (scaled_dot,),
    Opcode.REDUCE: (reduce_in_wider_type,),
    Opcode.REDUCE_WINDOW: (window_of_everything, reduce_in_wider_type),
    Opcode.RNG: (rng,),
    Opcode.RNG_BIT_GENERATOR: (rng_bit_generator,),
    **{opcode: (rule,) for opcode, rule in ASYNCHRONOUS.items()},
    **{opcode: (rule,) for opcode, rule in COLLECTIVE.items()},
    Opcode.SCAN: (scan,),
    Opcode.TOPK: (topk_by_sort,),
}
"""The rules that write ops with simpler ones, whatever the backend."""

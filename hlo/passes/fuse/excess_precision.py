"""excess-precision: a fusion rounds bf16 and f16 values where it stores them, and not after each operation.

    multiply(bf16 x, bf16 y), add(that, x)  ->  convert(add(multiply(convert(x), convert(y)), convert(x)))

Only where the module allows it (`ALLOWS_EXCESS`), as XLA's option `xla_allow_excess_precision` says. Conversions from
f32 and back that the program itself has go too. Source: XLA's SimplifyFPConversions and FloatNormalization.
"""

from __future__ import annotations

from ...backend import ALLOWS_EXCESS
from ...builder import make_instruction
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...support.records import dataclass
from ..patterns import convert
from ..rewrite import map_each_computation, rewrite_computation

_HALVES = frozenset((ElementType.BF16, ElementType.F16))
_OF_BITS = frozenset((Opcode.BITCAST_CONVERT, Opcode.REDUCE_PRECISION, Opcode.STOCHASTIC_CONVERT, Opcode.CONVERT))
"""Ops that use a type's own bits, or that ask for a rounding."""


@dataclass(frozen=True, slots=True)
class ExcessPrecision:
    """Acts in fused computations: values stored between fusions have the types that the program gives them."""

    name: str = "excess-precision"

    def __call__(self, module: HloModule) -> HloModule:
        if ALLOWS_EXCESS not in module.frontend_attributes:
            return module
        fused = {i.attributes.calls for i in module.instructions() if i.opcode is Opcode.FUSION}

        def rewrite(old: HloComputation, computation: HloComputation) -> HloComputation:
            if old not in fused:
                return computation
            widened: dict[HloInstruction, HloInstruction] = {}
            return rewrite_computation(computation, lambda _, moved: _widen(moved, widened))

        return map_each_computation(module, rewrite, inside_fusions=True)


def _widen(moved: HloInstruction, widened: dict[HloInstruction, HloInstruction]) -> HloInstruction:
    """The instruction in f32. `widened`: the existing conversions, by their operand."""
    if moved.opcode is Opcode.CONVERT:
        (x,) = moved.operands
        return x.operands[0] if moved.shape.element is ElementType.F32 and _is_narrowed(x) else moved
    if not has_trait(moved.opcode, Trait.ELEMENTWISE) or moved.opcode in _OF_BITS or not moved.operands:
        return moved
    half = moved.shape.element_type
    if half not in _HALVES or any(o.shape.element not in (half, ElementType.PRED) for o in moved.operands):
        return moved
    operands = []
    for o in moved.operands:
        if _is_narrowed(o):
            o = o.operands[0]
        elif o.shape.element is half:
            if o not in widened:
                widened[o] = convert(o, ElementType.F32)
            o = widened[o]
        operands.append(o)
    shape = moved.shape.with_element_type(ElementType.F32)
    return convert(make_instruction(moved.opcode, operands, moved.attributes, shape), half)


def _is_narrowed(x: HloInstruction) -> bool:
    """True for a value of f32 that has become a half."""
    return x.opcode is Opcode.CONVERT and x.shape.element in _HALVES and x.operands[0].shape.element is ElementType.F32

"""whole-systems: factors that only one solve reads are not stored.

    lu = custom-call(a), "LuDecomposition";  custom-call(a, lu's factors, lu's permutation, b), "hloom.lu_solve"
      ->  custom-call(a, b), "hloom.solve"      and if b is identities, custom-call(a), "hloom.inverse"

Where derivatives use the factors again, they stay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...builder import make_instruction
from ...custom_calls import is_built_in
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ...support.records import dataclass
from ..patterns import splat_value
from ..rewrite import map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class WholeSystems:
    """Merges a factorisation and its only solve, where the backend `has_kernel` for both at once."""

    has_kernel: Callable[[HloInstruction], bool]
    name: str = "whole-systems"

    def __call__(self, module: HloModule) -> HloModule:
        if not any(_is_call(i, "hloom.lu_solve") for i in module.instructions()):
            return module
        return map_computations(module, self._merged)

    def _merged(self, computation: HloComputation) -> HloComputation:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if not _is_only_solve(computation, old):
                return moved
            _, factors, _, b = moved.operands
            operands = (factors.operands[0].operands[0], b)
            if _is_identity(b):
                found = self._call("hloom.inverse", operands[:1], old)
                if found is not None:
                    return found
            return self._call("hloom.solve", operands, old) or moved

        return rewrite_computation(computation, visit)

    def _call(
        self, target: str, operands: tuple[HloInstruction, ...], old: HloInstruction
    ) -> HloInstruction | None:
        attributes = CustomCallAttributes(target, "{}", CustomCallApiVersion.TYPED_FFI)
        found = make_instruction(Opcode.CUSTOM_CALL, operands, attributes, shape=old.shape)
        return found if is_built_in(target) and self.has_kernel(found) else None


def _is_call(instruction: HloInstruction, target: str) -> bool:
    return (
        instruction.opcode is Opcode.CUSTOM_CALL
        and instruction.attributes.custom_call_target == target
        and is_built_in(target)
    )


def _is_only_solve(computation: HloComputation, solve: HloInstruction) -> bool:
    """True for a solve with a matrix if its factors have no other use."""
    if not _is_call(solve, "hloom.lu_solve") or solve.attributes.backend_config != "{trans = 0}":
        return False
    _, factors, permutation, _ = solve.operands
    parts = {0: factors, 2: permutation}
    if any(p.opcode is not Opcode.GET_TUPLE_ELEMENT or p.attributes.index != k for k, p in parts.items()):
        return False
    (lu,), (other,) = factors.operands, permutation.operands
    if lu is not other or not _is_call(lu, "LuDecomposition"):
        return False
    users = computation.users
    for part in users[lu]:
        if part.opcode is not Opcode.GET_TUPLE_ELEMENT or part is computation.root:
            return False
        if any(user is not solve for user in users[part]):
            return False
    return True


def _is_identity(b: HloInstruction) -> bool:
    """True for identity matrices, as `eye` makes them: a comparison of two iotas with a difference that is zero on the
    diagonal, converted and repeated."""
    rank = b.shape.rank
    dimensions = (rank - 2, rank - 1)
    while b.opcode in (Opcode.BROADCAST, Opcode.CONVERT):
        if b.opcode is Opcode.BROADCAST:
            kept = b.attributes.dimensions
            if any(d not in kept for d in dimensions):
                return False
            dimensions = (kept.index(dimensions[0]), kept.index(dimensions[1]))
        b = b.operands[0]
    if b.opcode is Opcode.CONSTANT:
        literal = b.attributes.literal.array
        return literal.ndim == 2 and dimensions == (0, 1) and bool((literal == np.eye(len(literal))).all())
    if b.opcode is not Opcode.COMPARE or b.attributes.direction.value != "EQ":
        return False
    x, y = b.operands
    if splat_value(y) == 0 and x.opcode is Opcode.SUBTRACT:
        x, y = x.operands
    if not all(i.opcode is Opcode.IOTA for i in (x, y)) or not x.shape.element.is_integral:
        return False
    if x.shape.dimensions[dimensions[0]] != x.shape.dimensions[dimensions[1]]:
        return False
    return sorted((x.attributes.iota_dimension, y.attributes.iota_dimension)) == sorted(dimensions)

"""known-composites: calls of composites that the backend computes in one piece.

    call(factors, permutation, b), to_apply=solve, is_composite=true, ... "hloom.custom_call_target" = "hloom.lu_solve"
      ->  custom-call(factors, permutation, b), custom_call_target="hloom.lu_solve"

A composite may name a custom call that computes the same from the same operands (its other parameters are that call's
configuration). Where the backend has a kernel for the call, it takes the composite's place. It does so before calls are
inlined, since afterwards the operation cannot be found in its parts.
"""

from __future__ import annotations

from collections.abc import Callable

from ...builder import make_instruction, make_tuple
from ...custom_calls import is_built_in
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.control_flow import TARGET_KEY
from ...ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ...support.records import dataclass
from ...text.mlir_dictionary import write_dictionary
from ..rewrite import map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class KnownComposites:
    """Replaces composites that name a custom call with `has_kernel`. A target that the user has registered again is not
    taken: it may compute something else."""

    has_kernel: Callable[[HloInstruction], bool]
    name: str = "known-composites"

    def __call__(self, module: HloModule) -> HloModule:
        if not any(map(_target, module.instructions())):
            return module
        return map_computations(module, self._rewritten)

    def _rewritten(self, computation: HloComputation) -> HloComputation:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            target = _target(moved)
            if not target or not is_built_in(target):
                return moved
            results = moved.shape.elements
            config = [pair for pair in moved.attributes.composite.parameters if pair[0] != TARGET_KEY]
            attributes = CustomCallAttributes(target, write_dictionary(config), CustomCallApiVersion.TYPED_FFI)
            shape = results[0] if len(results) == 1 else moved.shape
            found = make_instruction(Opcode.CUSTOM_CALL, moved.operands, attributes, shape=shape)
            if not self.has_kernel(found):
                return moved
            return make_tuple([found]) if len(results) == 1 else found

        return rewrite_computation(computation, visit)


def _target(instruction: HloInstruction) -> str:
    """The custom call that a composite names as its equal; "" for all else."""
    if instruction.opcode is not Opcode.CALL or instruction.attributes.composite is None:
        return ""
    return dict(instruction.attributes.composite.parameters).get(TARGET_KEY, "") if instruction.shape.is_tuple else ""

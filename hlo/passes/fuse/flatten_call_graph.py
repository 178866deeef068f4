"""flatten-call-graph: every loop body, branch and callee gets a separate copy for each instruction that calls it.

Buffer assignment assigns a computation's buffers once, so two callers may not share one. Reducers and the bodies of
fusions have no buffers and stay shared. Source: XLA's FlattenCallGraph.
"""

from __future__ import annotations

from dataclasses import replace

from ...builder import with_unique_names
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...provenance import note_replacements
from ...support.records import dataclass
from ..rewrite import rewrite_computation

CONTROL_FLOW = frozenset({Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL})


@dataclass(frozen=True, slots=True)
class FlattenCallGraph:
    """Copies computations that several WHILE, CONDITIONAL or CALL instructions name."""

    name: str = "flatten-call-graph"

    def __call__(self, module: HloModule) -> HloModule:
        if not _has_shared_callee(module):
            return module
        entry = _flatten(module.entry, set())
        return with_unique_names(replace(module, entry=entry))


def _has_shared_callee(module: HloModule) -> bool:
    seen: set[HloComputation] = set()
    for instruction in module.instructions():
        if instruction.opcode in CONTROL_FLOW:
            for called in instruction.called_computations():
                if called in seen:
                    return True
                seen.add(called)
    return False


def _flatten(computation: HloComputation, taken: set[HloComputation]) -> HloComputation:
    """`computation` with callees that are not in `taken`, to any depth; the ones used are added there."""

    def callee(called: HloComputation) -> HloComputation:
        own = _copied(called) if called in taken else called
        taken.add(own)
        return _flatten(own, taken)

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode not in CONTROL_FLOW:
            return moved
        attributes = old.attributes.map_computations(callee)
        return moved if attributes is old.attributes else replace(moved, attributes=attributes)

    return rewrite_computation(computation, visit)


def _copied(computation: HloComputation) -> HloComputation:
    """The same instructions as new objects, parameters and dead code included."""
    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        mapping[old] = replace(old, operands=tuple(mapping[o] for o in old.operands))
    note_replacements(mapping)
    return HloComputation(computation.name, tuple(mapping.values()), mapping[computation.root])

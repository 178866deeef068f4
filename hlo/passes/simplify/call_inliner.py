"""call-inliner: replaces every call by the called instructions, composites and nested jits included.

The meaning of a composite matters to autodiff and batching, which run before; all later passes see plain ops. Fusions
in a module's text (as XLA prints it after its own passes) are inlined too: they were made
for another code generator. So are asynchronous calls: nothing runs between their start and their done. Source: XLA's
CallInliner.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...builder import make_tuple
from ...errors import UnsupportedError
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...support.records import dataclass
from ..patterns import make_zeros
from ..rewrite import (
    Effects,
    calling,
    clone_computation,
    cloned_effects,
    map_each_computation,
    rewrite_computation,
)

INLINED = frozenset({Opcode.ASYNC_START, Opcode.CALL, Opcode.FUSION})
COPIED = INLINED | {Opcode.CONDITIONAL, Opcode.WHILE}
"""Each of these gets a copy of the computation that it calls: calls here, the others when buffers are assigned
(flatten-call-graph)."""
MOST_INSTRUCTIONS, MOST_COPIES = 100_000, 4
"""A program may grow to so many instructions, or to so many times the instructions that it has: where each computation
calls the one before it twice, copies double with every call."""


@dataclass(frozen=True, slots=True)
class CallInliner:
    """Replaces CALL, FUSION and ASYNC_START by a copy of the callee; copies keep metadata, and names that are free."""

    name: str = "call-inliner"

    def __call__(self, module: HloModule) -> HloModule:
        _require_few_copies(module)
        copies: set[HloInstruction] = set()
        new: dict[HloComputation, HloComputation] = {}
        inline = partial(_inline_calls, copies, new)
        return map_each_computation(module, lambda old, _: inline(old), inside_fusions=True, own=copies, new=new)


def _require_few_copies(module: HloModule) -> None:
    """UnsupportedError if copies of called computations would make the program too long to compile."""
    copied: dict[HloComputation, int] = {}
    written = 0
    for computation in module.computations:  # callees first
        written += len(computation.instructions)
        inside = [i.called_computations() for i in computation.callers if i.opcode in COPIED]
        copied[computation] = len(computation.instructions) + sum(copied[c] for called in inside for c in called)
    longest = max(copied, key=copied.__getitem__)
    if copied[longest] > max(MOST_INSTRUCTIONS, MOST_COPIES * written):
        raise UnsupportedError(
            f"computation {longest.name} of module {module.name} has {copied[longest]:,} instructions when each call, "
            f"loop and branch has its own copy of what it calls (the text has {written:,}), at most "
            f"{max(MOST_INSTRUCTIONS, MOST_COPIES * written):,} can be compiled: call less often, for example in a "
            "loop, or use the evaluator"
        )


def _inline_calls(
    made: set[HloInstruction], new: Mapping[HloComputation, HloComputation], computation: HloComputation
) -> HloComputation:
    """The computation with the called instructions in the place of calls; the copies are added to `made`. `new`: the
    computations that instructions are to call."""
    callers = frozenset(computation.callers)
    if not callers or (new.keys().isdisjoint(computation.callees) and INLINED.isdisjoint(computation.opcodes)):
        return computation
    effects: Effects = {}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old not in callers:
            return moved
        moved = calling(moved, new)
        if moved.opcode not in INLINED:
            return moved
        (callee,) = moved.called_computations()
        operands = dict(zip(callee.parameters, moved.operands, strict=True))
        root, copies = clone_computation(callee, operands, moved.metadata)
        made.update([new for old, new in copies.items() if old not in operands])
        effects[old] = cloned_effects(callee, copies)
        return _started(moved, root) if moved.opcode is Opcode.ASYNC_START else root

    return rewrite_computation(computation, visit, effects)


def _started(start: HloInstruction, result: HloInstruction) -> HloInstruction:
    """((operands), result, contexts...); only the result is used."""
    contexts = [make_zeros(shape) for shape in start.shape.elements[2:]]
    return make_tuple([make_tuple(start.operands), result, *contexts])

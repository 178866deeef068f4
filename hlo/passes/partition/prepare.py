"""What happens before a program is partitioned: calls become plain instructions, each loop gets its own body.

What is one device's own program already stays as it is: the inside of a shard_map. It begins where
`SPMDFullToShardShape` (or Shardy's `GlobalToLocalShape`) makes parts of whole arrays, and ends where
`SPMDShardToFullShape` (`LocalToGlobalShape`) makes whole arrays of parts. All that is computed from such parts, or from
the number of the device, lies between.
"""

from __future__ import annotations

from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...shardy import GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL
from ..expand.scan import scan
from ..fuse.flatten_call_graph import FlattenCallGraph
from ..layout.layout_erasure import LayoutErasure
from ..rewrite import Effects, clone_computation, cloned_effects, map_computations, rewrite_computation
from ..simplify.dead_code_elimination import DeadCodeElimination

TO_PARTS = frozenset({"SPMDFullToShardShape", GLOBAL_TO_LOCAL})
TO_WHOLE = frozenset({"SPMDShardToFullShape", LOCAL_TO_GLOBAL})
OF_DEVICES = frozenset(
    {
        *(Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_TO_ALL),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START),
        *(Opcode.PARTITION_ID, Opcode.RAGGED_ALL_TO_ALL, Opcode.REDUCE_SCATTER, Opcode.REPLICA_ID),
    }
)
_BODIES = ("xla.sdy.manual_computation_body", "shmap_body")
"""How JAX names the computation of a shard_map: its calls need not have operands."""


def prepared(module: HloModule) -> HloModule:
    """The same program without calls, scans and layouts outside of what is one device's own."""
    module = LayoutErasure()(DeadCodeElimination()(module))
    module = map_computations(module, _expanded)
    module = map_computations(module, _inlined)
    return FlattenCallGraph()(DeadCodeElimination()(module))


def target_of(instruction: HloInstruction) -> str:
    """The target of a custom call, "" for other instructions."""
    if instruction.opcode is not Opcode.CUSTOM_CALL:
        return ""
    target: str = instruction.attributes.custom_call_target
    return target


def manual_instructions(computation: HloComputation) -> set[HloInstruction]:
    """The instructions of one device's own program, from those that make parts of whole arrays on."""
    found: set[HloInstruction] = set()
    for instruction in computation.instructions:
        target = target_of(instruction)
        if target in TO_WHOLE:
            continue
        if target in TO_PARTS or is_own(instruction) or any(operand in found for operand in instruction.operands):
            found.add(instruction)
    return found


def is_own(instruction: HloInstruction) -> bool:
    """True for what only one device's own program has: its number, collectives, an argument that is stated to be its
    own, and calls and loops with one of these inside."""
    if instruction.opcode in OF_DEVICES:
        return True
    if instruction.opcode is Opcode.PARAMETER:
        return ("sharding", "{manual}") in instruction.annotations
    if instruction.opcode is Opcode.CALL and instruction.attributes.to_apply.name.startswith(_BODIES):
        return True
    return any(_is_own(called) for called in instruction.called_computations())


def _is_own(computation: HloComputation) -> bool:
    """True for a computation with something of one device's own that does not begin and end in it."""
    instructions = computation.instructions
    borders = TO_PARTS | TO_WHOLE
    if any(i.opcode is Opcode.CUSTOM_CALL and target_of(i) in borders for i in instructions):
        return False
    return any(is_own(i) for i in instructions if i.opcode is not Opcode.PARAMETER)


def _expanded(computation: HloComputation) -> HloComputation:
    if all(i.opcode is not Opcode.SCAN for i in computation.instructions):
        return computation
    manual = manual_instructions(computation)

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        return scan(moved) if moved.opcode is Opcode.SCAN and old not in manual else moved

    return rewrite_computation(computation, visit)


def _inlined(computation: HloComputation) -> HloComputation:
    """Calls and fusions replaced by what they call."""
    if all(i.opcode not in (Opcode.CALL, Opcode.FUSION) for i in computation.instructions):
        return computation
    manual = manual_instructions(computation)
    effects: Effects = {}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode not in (Opcode.CALL, Opcode.FUSION) or old in manual:
            return moved
        (callee,) = moved.called_computations()
        operands = dict(zip(callee.parameters, moved.operands, strict=True))
        root, copies = clone_computation(callee, operands, moved.metadata)
        effects[old] = cloned_effects(callee, copies)
        return root

    return rewrite_computation(computation, visit, effects)

"""Preparation of a program for partitioning: calls become plain instructions, each loop gets its own body.

Code that is already one device's own program does not change: the inside of a shard_map. It begins where
`SPMDFullToShardShape` (or Shardy's `GlobalToLocalShape`) makes parts of whole arrays, and ends where
`SPMDShardToFullShape` (`LocalToGlobalShape`) makes whole arrays of parts. All that is computed from such parts, or from
the number of the device, lies between.

A shard_map may take some axes of the mesh only. Along the others, the arrays between its borders are still whole and
for the partitioner to cut. Such instructions are in a *region*: the devices that share an array there, as a sharding.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...sharding import HloSharding
from ...shardy import GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL
from ..expand.scan import scan
from ..fuse.flatten_call_graph import FlattenCallGraph
from ..layout.layout_erasure import LayoutErasure
from ..rewrite import Effects, clone_computation, cloned_effects, map_computations, rewrite_computation
from ..simplify.dead_code_elimination import DeadCodeElimination

TO_PARTS = frozenset({"SPMDFullToShardShape", GLOBAL_TO_LOCAL})
TO_WHOLE = frozenset({"SPMDShardToFullShape", LOCAL_TO_GLOBAL})
BORDERS: Collection[str] = TO_PARTS | TO_WHOLE
OF_DEVICES = frozenset(
    {
        *(Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_TO_ALL),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START),
        *(Opcode.PARTITION_ID, Opcode.RAGGED_ALL_TO_ALL, Opcode.REDUCE_SCATTER, Opcode.REPLICA_ID),
    }
)
BODIES = ("xla.sdy.manual_computation_body", "shmap_body")
"""How JAX names the computation of a shard_map: its calls may have no operands."""


def prepared(module: HloModule) -> HloModule:
    """The same program without calls, scans and layouts outside of one device's own code."""
    module = LayoutErasure()(DeadCodeElimination()(module))
    module = map_computations(module, _untupled)
    module = map_computations(module, _expanded)
    module = map_computations(module, _inlined)
    return FlattenCallGraph()(DeadCodeElimination()(module))


def target_of(instruction: HloInstruction) -> str:
    """The target of a custom call, "" for other instructions."""
    if instruction.opcode is not Opcode.CUSTOM_CALL:
        return ""
    target: str = instruction.attributes.custom_call_target
    return target


Region = frozenset[HloSharding]
NOWHERE: Region = frozenset()


REGION = "hloom.region"
"""The attribute in which collectives, the device's number and calls of the host say in which region they are; of calls
also "{manual}": in one device's own program."""


def region_named(instruction: HloInstruction) -> Region:
    """The region that the text of an instruction names: of a border's result, of a collective, of a device's number."""
    says_so = target_of(instruction) in BORDERS or target_of(instruction) == "Sharding"
    if not says_so and instruction.opcode not in OF_DEVICES and instruction.opcode is not Opcode.CUSTOM_CALL:
        return NOWHERE
    texts = [text for key, text in instruction.frontend_attributes if key == REGION]
    if says_so and not texts:
        texts = [text for key, text in instruction.annotations if key == "sharding" and "last_tile_dims" in text]
    found = [HloSharding.parse(text) for text in texts]
    return frozenset([s.manual_part() if s.is_partly_manual else s for s in found if not s.is_manual])


def manual_instructions(computation: HloComputation) -> set[HloInstruction]:
    """The instructions of one device's own program, from those that make parts of whole arrays on."""
    return sorted_out(computation)[0]


def sorted_out(
    computation: HloComputation, around: Region = NOWHERE, given: dict[HloInstruction, Region] | None = None
) -> tuple[set[HloInstruction], dict[HloInstruction, Region]]:
    """The instructions of one device's own program, and those in a region. `around`: the region of all that is here.
    `given`: those of parameters."""
    manual: set[HloInstruction] = set()
    regions: dict[HloInstruction, Region] = {}
    for i in computation.instructions:
        target, own = target_of(i), region_named(i) | around
        if target in TO_PARTS and not region_named(i):
            manual.add(i)
            continue
        if target not in BORDERS:
            if any(operand in manual for operand in i.operands):
                manual.add(i)
                continue
            own |= (given or {}).get(i, NOWHERE).union(*(regions.get(o, NOWHERE) for o in i.operands))
            own = own.union(*map(_regions_inside, i.called_computations()))
            if not own and is_own(i):
                manual.add(i)
                continue
        if own:
            regions[i] = own
    return manual, regions


def _regions_inside(computation: HloComputation) -> Region:
    """The regions of a loop or branch that uses nothing of its region but the device's number."""
    if has_border(computation):
        return NOWHERE
    found = NOWHERE.union(*map(region_named, computation.instructions))
    return found.union(*(_regions_inside(c) for i in computation.instructions for c in i.called_computations()))


def has_border(computation: HloComputation) -> bool:
    """Whether a shard_map begins or ends in it."""
    return any(i.opcode is Opcode.CUSTOM_CALL and target_of(i) in BORDERS for i in computation.instructions)


def is_own(instruction: HloInstruction) -> bool:
    """True for instructions that only one device's own program has: its number, collectives, a call or an argument that
    is stated to be its own, and calls and loops with one of these inside."""
    if instruction.opcode in OF_DEVICES:
        return not region_named(instruction)
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return (REGION, "{manual}") in instruction.frontend_attributes
    if instruction.opcode is Opcode.PARAMETER:
        return ("sharding", "{manual}") in instruction.annotations
    if instruction.opcode is Opcode.CALL and instruction.attributes.to_apply.name.startswith(BODIES):
        return True
    return any(_is_own(called) for called in instruction.called_computations())


def _is_own(computation: HloComputation) -> bool:
    """True for a computation with something of one device's own that does not begin and end in it."""
    if has_border(computation):
        return False
    return any(is_own(i) for i in computation.instructions if i.opcode is not Opcode.PARAMETER)


def _untupled(computation: HloComputation) -> HloComputation:
    """Elements of tuples replaced by the operands: a tuple may have whole arrays beside one device's own values, as the
    result of a call has that returns what a derivative needs of the inside of a shard_map."""
    if all(_operand_for(i) is i for i in computation.instructions):
        return computation
    return rewrite_computation(computation, lambda _, moved: _operand_for(moved))


def _operand_for(i: HloInstruction) -> HloInstruction:
    """The operand of a tuple that an instruction takes out again, unless it states a sharding; else itself."""
    if i.opcode is not Opcode.GET_TUPLE_ELEMENT or i.operands[0].opcode is not Opcode.TUPLE:
        return i
    if any(key == "sharding" for key, _ in (*i.annotations, *i.operands[0].annotations)):
        return i
    found: HloInstruction = i.operands[0].operands[i.attributes.index]
    return found


def _expanded(computation: HloComputation) -> HloComputation:
    if all(i.opcode is not Opcode.SCAN for i in computation.instructions):
        return computation
    manual = manual_instructions(computation)

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        return scan(moved) if moved.opcode is Opcode.SCAN and old not in manual else moved

    return rewrite_computation(computation, visit)


def _inlined(computation: HloComputation) -> HloComputation:
    """Calls and fusions replaced by the bodies of their computations."""
    if all(i.opcode not in (Opcode.CALL, Opcode.FUSION) for i in computation.instructions):
        return computation
    manual = manual_instructions(computation)
    effects: Effects = {}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode not in (Opcode.CALL, Opcode.FUSION) or old in manual:
            return _operand_for(moved)
        (callee,) = moved.called_computations()
        operands = dict(zip(callee.parameters, moved.operands, strict=True))
        root, copies = clone_computation(callee, operands, moved.metadata)
        effects[old] = cloned_effects(callee, copies)
        return root

    return rewrite_computation(computation, visit, effects)

"""The pass that makes output fusions, of a scheduled module."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.builder import make_get_tuple_element, make_tuple
from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.passes.rewrite import map_each_computation
from ...hlo.provenance import note_made, note_replacements
from ...hlo.support.records import dataclass
from ..fused_computations import FusedComputations
from ..machine import target_machine
from .find import Group, find_groups
from .form import Leaf, Pieces, fusion_of, leaf_of, with_pieces
from .memory import MEMBERS, memory_of

LEAST_PARTS = 16
"""Most parts of a fusion's own memory, or more if they fit into `parts_bytes`. The threads of a larger machine wait for
each other."""


def parts_bytes() -> int:
    """See `LEAST_PARTS`."""
    return 4 * target_machine().second_cache


def most_parts(nbytes: int) -> int:
    """Most parts of the memory for pieces, each of so many bytes."""
    return max(LEAST_PARTS, parts_bytes() // max(nbytes, 1))


@dataclass(frozen=True, slots=True)
class OutputFusion:
    """The pass. `by_pieces`: kernels run piece by piece. If not, each runs for all rows before the next one, and only
    products are fused, since only their kernels differ."""

    bodies: FusedComputations
    by_pieces: bool = True
    name: str = "output-fusion"

    def __call__(self, module: HloModule) -> HloModule:
        opcodes = {i.opcode for c in module.computations for i in c.instructions}
        if opcodes.isdisjoint((MEMBERS - {Opcode.FUSION}) | {Opcode.SCATTER}):
            return module
        reducers: set[HloComputation] = set()
        for instruction in module.instructions():
            if has_trait(instruction.opcode, Trait.APPLIES):
                reducers.update(instruction.called_computations())
        return map_each_computation(
            module, lambda old, computation: computation if old in reducers else self._fused(computation)
        )

    def _fused(self, computation: HloComputation) -> HloComputation:
        groups = find_groups(computation, self.bodies, products_only=not self.by_pieces)
        return _Writer(computation, self).write(groups) if groups else computation

    def fusion(self, group: Group, outputs: Sequence[Leaf]) -> HloInstruction:
        """The fusion of a group, with memory of its own if it needs some."""
        fusion = fusion_of(group.members, outputs, 0)
        if group.members[-1].opcode is Opcode.SCATTER:
            return fusion
        pieces = None if group.cut is None else Pieces(group.cut, 0)
        part = memory_of(fusion.attributes.calls, pieces, self.bodies.can_share).part  # for all rows
        parts = 1
        if pieces is not None and self.by_pieces:
            shared = pieces._replace(parts=1)
            small = memory_of(fusion.attributes.calls, shared, self.bodies.can_share).part
            count = pieces.cut.pieces
            few = -(-count // -(-count // most_parts(small)))
            if small * few < part:
                pieces, part, parts = pieces._replace(parts=few), small, few
        if part:
            fusion = fusion_of(group.members, outputs, part * parts)
        return fusion if pieces is None else with_pieces(fusion, pieces)


class _Writer:
    """A computation with groups of its instructions in fusions."""

    def __init__(self, computation: HloComputation, fuse: OutputFusion) -> None:
        self.computation, self.fuse = computation, fuse
        self.mapping: dict[HloInstruction, HloInstruction] = {}
        self.leaves: dict[Leaf, HloInstruction] = {}
        """The values that stand for results of members, for the instructions that read them."""
        self.order: list[HloInstruction] = []

    def write(self, groups: list[Group]) -> HloComputation:
        """The computation. Instructions that read results of a group follow it."""
        group_of = {member: group for group in groups for member in group.members}
        waiting = set(group_of)
        late: dict[HloInstruction, None] = {}
        for old in self.computation.instructions:
            group = group_of.get(old)
            if group is None:
                if any(operand in waiting or operand in late for operand in old.operands):
                    late[old] = None
                else:
                    self._move(old)
            elif old is group.members[-1]:
                self._fuse(group)
                waiting.difference_update(group.members)
                for reader in late:
                    self._move(reader)
                late.clear()
        note_replacements(self.mapping)
        return HloComputation(self.computation.name, tuple(self.order), self.mapping[self.computation.root])

    def _move(self, old: HloInstruction) -> None:
        if old.opcode is Opcode.GET_TUPLE_ELEMENT and old.operands[0] not in self.mapping:
            if leaf_of(old) in self.leaves:  # all others are read by members alone
                self.mapping[old] = self.leaves[leaf_of(old)]
            return
        self.mapping[old] = old.with_operands(tuple([self.mapping[o] for o in old.operands]))
        self.order.append(self.mapping[old])

    def _fuse(self, group: Group) -> None:
        members = set(group.members)
        outputs = [leaf for member in group.members for leaf in self._read_leaves(member, members)]
        fusion = self.fuse.fusion(group, outputs)
        fusion = fusion.with_operands(tuple([self.mapping[operand] for operand in fusion.operands]))
        note_made(fusion, group.members)
        results = [fusion]
        if fusion.shape.is_tuple:
            results = [make_get_tuple_element(fusion, k) for k, _ in enumerate(outputs)]
            for (member, _), result in zip(outputs, results, strict=True):
                note_made(result, (member,))
            self.order.append(fusion)
        self.order += results
        self.leaves.update(zip(outputs, results, strict=True))
        for member in group.members:
            if not member.shape.is_tuple:
                if (member, 0) in self.leaves:
                    self.mapping[member] = self.leaves[member, 0]
            elif self._is_read_whole(member):
                leaves = [self.leaves[member, k] for k, _ in enumerate(member.shape.elements)]
                self.mapping[member] = make_tuple(leaves)
                self.order.append(self.mapping[member])

    def _is_read_whole(self, member: HloInstruction) -> bool:
        users = self.computation.users[member]
        return member is self.computation.root or any(u.opcode is not Opcode.GET_TUPLE_ELEMENT for u in users)

    def _read_leaves(self, member: HloInstruction, members: set[HloInstruction]) -> list[Leaf]:
        """The results of a member that others read."""
        users, root = self.computation.users, self.computation.root
        if not member.shape.is_tuple:
            return [(member, 0)] if member is root or not members.issuperset(users[member]) else []
        if member.opcode is Opcode.SCATTER or self._is_read_whole(member):
            return [(member, k) for k, _ in enumerate(member.shape.elements)]
        read = {e.attributes.index for e in users[member] if e is root or not members.issuperset(users[e])}
        return [(member, k) for k in sorted(read)]

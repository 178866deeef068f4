"""Decide which outputs of a kernel may overwrite which operands: the rule that buffer assignment asks for."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.passes.fuse.fusible import reads_at_its_own_index, reads_of_its_own
from ...hlo.support.lazy import lazy_property
from .alignment import reductions_of
from .collapse import FusedBody


class Sharing:
    """The rule for one canonical fused computation. It is asked for many pairs, so it caches its answers."""

    def __init__(self, fused: FusedBody) -> None:
        self.fused = fused
        self.body = fused.computation
        self._answers: dict[tuple[int, int], bool] = {}

    @lazy_property
    def _roots(self) -> tuple[HloInstruction, ...]:
        return self.body.roots

    @lazy_property
    def _has_reductions(self) -> bool:
        return bool(reductions_of(self.body).main)

    @lazy_property
    def _elsewhere(self) -> set[HloInstruction]:
        return _read_elsewhere(self._roots)

    def may_overwrite(self, operand: int, output: int) -> bool:
        """True when the kernel may write `output` over `operand`."""
        found = self._answers.get((operand, output))
        if found is None:
            found = self._answers[operand, output] = self._may_overwrite(operand, output)
        return found

    def _may_overwrite(self, operand: int, output: int) -> bool:
        """In a plain nest: if the operand is read only at the output's own index. In a nest that ends in
        a dynamic-update-slice: its operand, if the nest reads of it only what it replaces, or if it writes one element,
        after all reads. In a nest with reductions: if the output is written in the last loop, and all loops read the
        operand only at their own index.
        """
        body, root = self.body, self._roots[output]
        parameter = body.parameters[operand]
        same_place = self.fused.parameter_places.get(operand) == self.fused.root_places.get(output)
        if self._has_reductions:
            alike = parameter.shape == root.shape and same_place
            return alike and self.fused.stage_plan.may_overwrite(parameter, output)
        if is_update(self.fused, root):
            return root.operands[0] is parameter and root.operands.count(parameter) == 1 and (
                root.operands[1].shape.num_elements == 1
                or all(user is root or _reads_what_is_replaced(user, root) for user in body.users[parameter])
            )
        return parameter.shape == root.shape and same_place and parameter not in self._elsewhere


def is_update(fused: FusedBody, root: HloInstruction) -> bool:
    """True for a fusion that is a nest over the update of a dynamic-update-slice, written into a copy of its operand:
    if the operand is a parameter with the layout of the output."""
    if root.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or root.operands[0].opcode is not Opcode.PARAMETER:
        return False
    number = root.operands[0].attributes.number
    return fused.parameter_places.get(number) == fused.root_places.get(fused.computation.roots.index(root))


def _reads_what_is_replaced(user: HloInstruction, root: HloInstruction) -> bool:
    """True for a dynamic-slice if element i of it is overwritten by element i of the update, or by none."""
    own = user.operands[0] is root.operands[0] and reads_of_its_own(user, root)
    return own and user not in _read_elsewhere((root.operands[1],))


def _read_elsewhere(roots: tuple[HloInstruction, ...]) -> set[HloInstruction]:
    """The values that are read (perhaps also) at another index than the roots' own."""
    same: set[HloInstruction] = set()
    other: set[HloInstruction] = set()
    stack = [(r, True) for r in roots]
    while stack:
        node, is_same = stack.pop()
        seen = same if is_same else other
        if node in seen:
            continue
        seen.add(node)
        if node.opcode is Opcode.RESHAPE:  # the same number in row-major order
            stack.append((node.operands[0], is_same))
            continue
        for k, o in enumerate(node.operands):
            is_gather = node.opcode is Opcode.GATHER
            straight = reads_at_its_own_index(node, k) if is_gather else is_elementwise(node)
            stack.append((o, is_same and straight and o.shape.dimensions == node.shape.dimensions))
    return other

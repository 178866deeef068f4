"""Which values fusion must leave in a temporary, so that an array can be overwritten in place.

A loop nest that overwrites an array may read only elements that it replaces in the same step, or that no step replaces
(`reads_of_its_own`). Values of other places of the array that an update needs are therefore computed before, by a
separate nest, into a temporary: of the slice's size, or of a smaller one if the values become fewer on their way to the
update (a row that is then broadcast). An update of one element needs none: its nest has read everything before it
writes.
"""

from __future__ import annotations

import math

from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import Trait, has_trait
from .fusible import is_fusible, reads_at_its_own_index, reads_of_its_own, resolve, squeezed
from .overwriting import Leaf, Overwriting

LARGE_STATE_BYTES = 4096
"""Copying a smaller element of a loop's state, if it is recomputed as a whole, takes no longer than starting another
kernel."""


def temporaries(found: Overwriting) -> set[HloInstruction]:
    """The instructions with values that updates need in separate memory."""
    result: set[HloInstruction] = set()
    for update, leaves in found.overwritten.items():
        if update.opcode is Opcode.DYNAMIC_UPDATE_SLICE and update.operands[1].shape.num_elements > 1:
            for leaf in leaves:
                result |= _Readers(found, update, leaf).of_slice()
    for made, leaf in found.replaced.items():
        if has_trait(made.opcode, Trait.ELEMENTWISE) and made.shape.byte_size >= LARGE_STATE_BYTES:
            result |= _Readers(found, made, leaf).of_whole()
    return result


_Node = tuple[HloInstruction, bool]
"""An instruction, and whether the nest needs element i of it to write element i."""


class _Readers:
    """The values that fusion would compute in the nest of `update`, and those that read other places of the array
    `leaf`."""

    def __init__(self, found: Overwriting, update: HloInstruction, leaf: Leaf) -> None:
        self.found = found
        self.update = update
        self.leaf = leaf
        self._costs: dict[_Node, float] = {}
        """The fewest bytes of temporaries that free a node of conflicting reads: 0 if it has none, infinity if it is
        not possible."""

    def of_slice(self) -> set[HloInstruction]:
        """The temporaries of a dynamic-update-slice."""
        chosen: set[HloInstruction] = set()
        for number, operand in enumerate(self.update.operands):
            source, positions = resolve(operand)
            if number and self._is_inside(source) and self._conflicts(source):
                self._choose((source, number == 1 and _is_identity(operand, positions)), chosen)
        return chosen

    def of_whole(self) -> set[HloInstruction]:
        """The temporaries of an element-wise computation, if they are much smaller than its result."""
        node = self.update, True
        below = self._below(node)
        if below is None or not self._conflicts(self.update):
            return set()
        if not 0 < sum(map(self._cost, below)) <= self.update.shape.byte_size / 2:
            return set()
        chosen: set[HloInstruction] = set()
        for each in below:
            self._choose(each, chosen)
        return chosen

    def _is_inside(self, instruction: HloInstruction) -> bool:
        """True for instructions that fusion may recompute in the nest: not updates and reductions, which have their
        own."""
        return is_fusible(instruction) and instruction.opcode not in _APART

    def _reads_array(self, instruction: HloInstruction) -> bool:
        return self.leaf in self.found.leaves[instruction]

    def _conflicts(self, top: HloInstruction) -> bool:
        """True if the array is read at all: a quick look before the exact one."""
        seen, stack = {top}, [top]
        while stack:
            for operand in stack.pop().operands:
                source = resolve(operand)[0]
                if self._reads_array(source):
                    return True
                if source not in seen and self._is_inside(source):
                    seen.add(source)
                    stack.append(source)
        return False

    def _below(self, node: _Node) -> list[_Node] | None:
        """The nodes that the nest computes for a node; None if the node itself reads other places of the array."""
        instruction, own = node
        found: list[_Node] = []
        for number, operand in enumerate(instruction.operands):
            source, positions = resolve(operand)
            straight = own and reads_at_its_own_index(instruction, number) and _is_identity(operand, positions)
            if self._reads_array(source):
                if not (own and self._is_replaced(instruction, number, straight)):
                    return None
            elif self._is_inside(source):
                found.append((source, straight))
        return found

    def _is_replaced(self, reader: HloInstruction, number: int, straight: bool) -> bool:
        """True if the elements that `reader` reads are overwritten in the same step or not at all."""
        update = self.update
        if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE:
            return straight
        return number == 0 and reads_of_its_own(reader, update)

    def _cost(self, top: _Node) -> float:
        costs = self._costs
        stack = [top]
        while stack:
            node = stack[-1]
            if node in costs:
                stack.pop()
                continue
            below = self._below(node)
            missing = [n for n in below or () if n not in costs]
            if missing:
                stack += missing
                continue
            stack.pop()
            needed = math.inf if below is None else sum(costs[n] for n in below)
            costs[node] = min(needed, node[0].shape.byte_size)
        return costs[top]

    def _choose(self, top: _Node, chosen: set[HloInstruction]) -> None:
        """Add the temporaries that make the cost of `top`; of equal ones the last, so that there are few."""
        seen: set[_Node] = set()
        stack = [top]
        while stack:
            node = stack.pop()
            if node in seen or not self._cost(node):
                continue
            seen.add(node)
            below = self._below(node)
            if below is None or sum(map(self._cost, below)) >= node[0].shape.byte_size:
                chosen.add(node[0])
            else:
                stack += below


_APART = frozenset({Opcode.DYNAMIC_UPDATE_SLICE, Opcode.REDUCE})


def _is_identity(operand: HloInstruction, positions: tuple[int, ...]) -> bool:
    return positions == tuple(range(len(squeezed(operand))))

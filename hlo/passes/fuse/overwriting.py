"""Which instructions may overwrite an array that has no later use, and which must run before them.

An update writes a part of an array (dynamic-update-slice, scatter, control flow that contains one). It happens in place
if the old array has no further use when it runs: then it costs its slice. Whether the old array may be overwritten
depends on where it comes from (the caller's argument only if donated; an element of a loop's state only if the loop
changes it; a branch's operand only if the conditional may overwrite it), and on its other readers: all of them must be
able to run before the update. Fusion keeps them before the update and the scheduler orders them, both by the results of
this file; buffer assignment then shares the memory.

Only the order of instructions is decided here. A *leaf* is one array among the results of an instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from ...buffers.values import FirstLeaves, is_alias, leaf_count
from ...effects import effects_of
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...shape import Shape
from ...support.records import dataclass

MOST_VISITS = 16
"""Ordering visits each instruction of a computation at most so often, on average: the time is linear."""

Leaf = tuple[HloInstruction, int]
"""(instruction, number of the leaf): the array that this leaf of the instruction holds first."""


@dataclass(slots=True)
class Overwriting:
    """One computation in an order that runs as many updates as possible after the readers of the arrays that they
    change."""

    order: list[HloInstruction]
    before: dict[HloInstruction, set[HloInstruction]] = field(default_factory=dict)
    """By update: the instructions that read the array which it overwrites."""
    overwritten: dict[HloInstruction, dict[Leaf, set[HloInstruction]]] = field(default_factory=dict)
    """By update: the arrays that it may overwrite, and which of those instructions read each."""
    replaced: dict[HloInstruction, Leaf] = field(default_factory=dict)
    """In the body of a loop: by the instruction that computes the next value of an element of the state: the old value,
    after its updates, if it has no other use."""
    leaves: Mapping[HloInstruction, tuple[Leaf, ...]] = field(default_factory=dict)
    """The arrays of each instruction's result."""
    shapes: Mapping[Leaf, Shape] = field(default_factory=dict)
    """The shape of each array."""


def find_overwriting(
    module: HloModule,
    reads_through: Callable[[HloInstruction], bool] = lambda instruction: False,
    *,
    states: bool = False,
) -> dict[HloComputation, Overwriting]:
    """For each computation in which something may be overwritten: how.

    `reads_through`: instructions that each user computes for itself, so that the user reads their operands. `states`:
    whether the instruction that computes the next value of an element of a loop's state is an update of the old one,
    even if it writes all of it.
    """
    return _Finder(module, reads_through, states).run()


class _Arrays:
    """The arrays that the values of one computation are, and the readers of each."""

    def __init__(self, finder: _Finder, computation: HloComputation) -> None:
        self.leaves: dict[HloInstruction, tuple[Leaf, ...]] = {}
        self.shapes: dict[Leaf, Shape] = {}
        self.readers: dict[Leaf, list[HloInstruction]] = {}
        for instruction in computation.instructions:
            self.leaves[instruction] = self._of(finder, instruction)
            if not is_alias(instruction) and not finder.reads_through(instruction):
                for operand in instruction.operands:
                    for leaf in self.leaves[operand]:
                        self.readers.setdefault(leaf, []).append(instruction)
        self.root = self.leaves[computation.root]
        self.parameters = [leaf for p in computation.parameters for leaf in self.leaves[p]]

    def _of(self, finder: _Finder, instruction: HloInstruction) -> tuple[Leaf, ...]:
        leaves, operands = self.leaves, instruction.operands
        opcode = instruction.opcode
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            first = finder.first_leaves.of(operands[0].shape)[instruction.attributes.index]
            return leaves[operands[0]][first : first + leaf_count(instruction.shape)]
        if is_alias(instruction):
            return tuple([leaf for o in operands for leaf in leaves[o]])
        if finder.reads_through(instruction) and len(operands) == 1:
            return leaves[operands[0]]
        shapes = (instruction.shape,) if instruction.shape.tuple_shapes is None else instruction.shape.leaves()
        numbered = {(instruction, k): shape for k, shape in enumerate(shapes)}
        self.shapes.update(numbered)
        fresh = tuple(numbered)
        if opcode is Opcode.WHILE:
            kept = finder.arrays(instruction.attributes.body)
            initial = leaves[operands[0]]
            return tuple([initial[k] if kept.root[k] == kept.parameters[k] else own for k, own in enumerate(fresh)])
        return fresh


class _Finder:
    def __init__(self, module: HloModule, reads_through: Callable[[HloInstruction], bool], states: bool) -> None:
        self.module = module
        self.reads_through = reads_through
        self.states = states
        self.bodies = {i.attributes.body for i in module.instructions() if i.opcode is Opcode.WHILE}
        self._arrays: dict[HloComputation, _Arrays] = {}
        self._updates: dict[HloComputation, list[tuple[HloInstruction, Leaf]]] = {}
        self.first_leaves = FirstLeaves()

    def run(self) -> dict[HloComputation, Overwriting]:
        entry = self.module.entry
        if not self.bodies and not any(i.opcode in _UPDATING for i in self.module.instructions()):
            return {}
        donated = {(a.parameter, self.first_leaves.number(entry.parameters[a.parameter].shape, a.parameter_index))
                   for a in self.module.input_output_aliases}  # fmt: skip
        allowed = {entry: {(entry.parameters[number], leaf) for number, leaf in donated}}
        found: dict[HloComputation, Overwriting] = {}
        for computation in reversed(self.module.computations):  # callers before the computations that they call
            if computation in allowed and self._matters(computation):
                found[computation] = self._decide(computation, allowed[computation])
                self._allow_below(found[computation], computation, allowed)
        return found

    def arrays(self, computation: HloComputation) -> _Arrays:
        known = self._arrays.get(computation)
        if known is None:
            known = self._arrays[computation] = _Arrays(self, computation)
        return known

    def updates(self, computation: HloComputation) -> list[tuple[HloInstruction, Leaf]]:
        """The instructions of a computation that would write over an array, with that array."""
        known = self._updates.get(computation)
        if known is None:
            known = self._updates[computation] = [
                (i, leaf) for i in computation.instructions if i.operands for leaf in self._changed(i, computation)
            ]
        return known

    def _changed(self, i: HloInstruction, computation: HloComputation) -> Iterable[Leaf]:
        """The arrays that an instruction would write over."""
        match i.opcode:
            case Opcode.DYNAMIC_UPDATE_SLICE if not self._is_made_by_reader(i.operands[0]):
                return self.arrays(computation).leaves[i.operands[0]]
            case Opcode.SCATTER:
                arrays = self.arrays(computation)
                return [leaf for o in i.operands[: len(i.operands) // 2] for leaf in arrays.leaves[o]]
            case Opcode.FUSION:
                root = i.attributes.calls.root
                if root.opcode is Opcode.DYNAMIC_UPDATE_SLICE and root.operands[0].opcode is Opcode.PARAMETER:
                    return self.arrays(computation).leaves[i.operands[root.operands[0].attributes.number]]
                return ()
            case Opcode.WHILE:
                own, before = self.arrays(computation).leaves[i], self.arrays(computation).leaves[i.operands[0]]
                return [leaf for leaf, after in zip(before, own, strict=True) if leaf != after]
            case Opcode.CONDITIONAL:
                return self._changed_below(i, computation, i.attributes.branch_computations, i.operands[1:])
            case Opcode.CALL:
                return self._changed_below(i, computation, [i.attributes.to_apply], [i.operands])
            case _:
                return ()

    def _is_made_by_reader(self, array: HloInstruction) -> bool:
        while is_alias(array) and len(array.operands) == 1:
            array = array.operands[0]
        return self.reads_through(array)

    def _changed_below(
        self,
        i: HloInstruction,
        computation: HloComputation,
        called: Sequence[HloComputation],
        operands: Sequence[HloInstruction | Sequence[HloInstruction]],
    ) -> Iterable[Leaf]:
        """The arrays among the operands of a conditional or a call that the called computations would write over."""
        given = self.arrays(computation).leaves
        found: dict[Leaf, None] = {}
        for callee, operand in zip(called, operands, strict=True):
            passed = [operand] if isinstance(operand, HloInstruction) else operand
            outside = [leaf for o in passed for leaf in given[o]]
            inside = {leaf for _, leaf in self.updates(callee)}
            for leaf, own in zip(outside, self.arrays(callee).parameters, strict=True):
                if own in inside:
                    found[leaf] = None
        return found

    def _matters(self, computation: HloComputation) -> bool:
        """True if something may be overwritten in the computation, or in one that it calls."""
        if computation in self.bodies or self.updates(computation):
            return True
        return any(i.opcode in _CALLING for i in computation.instructions)

    def _decide(self, computation: HloComputation, allowed: set[Leaf]) -> Overwriting:
        arrays = self.arrays(computation)
        kept = set(arrays.root)
        carried = dict.fromkeys(zip((made for made, _ in arrays.root), arrays.parameters, strict=False))
        wanted = dict.fromkeys(self.updates(computation))
        replaced = {}
        if computation in self.bodies:
            replaced = {made: old for made, old in carried if made.opcode is not Opcode.PARAMETER and old not in kept}
        if self.states:
            wanted.update(dict.fromkeys(replaced.items()))
        sizes = {leaf: arrays.shapes[leaf].byte_size for _, leaf in wanted}
        result = _Orderer(computation)
        result.found.leaves, result.found.shapes = arrays.leaves, arrays.shapes
        for update, leaf in sorted(wanted, key=lambda pair: (pair not in carried, -sizes[pair[1]])):
            source = leaf[0]
            if source.opcode is Opcode.PARAMETER:
                may = leaf in allowed
            else:
                may = source.opcode is not Opcode.CONSTANT and not self.reads_through(source)
            if may and leaf not in kept:
                result.put_behind(update, leaf, arrays.readers.get(leaf, ()))
        result.found.order = result.order()
        after = {leaf: u for u, leaves in result.found.overwritten.items() for leaf in leaves if u.shape.is_array}
        for made, old in replaced.items():
            while old in after and after[old] is not made:
                old = after[old], 0
            result.found.replaced[made] = old
        return result.found

    def _allow_below(
        self, here: Overwriting, computation: HloComputation, allowed: dict[HloComputation, set[Leaf]]
    ) -> None:
        """Which parameters the computations called by this one may overwrite. With several callers: if all agree."""

        def allow(callee: HloComputation, leaves: set[Leaf]) -> None:
            allowed[callee] = allowed[callee] & leaves if callee in allowed else leaves

        given = self.arrays(computation).leaves
        for i in computation.instructions:
            if i.opcode is Opcode.WHILE:
                inside = self.arrays(i.attributes.body)
                pairs = zip(inside.parameters, inside.root, strict=True)
                allow(i.attributes.body, {old for old, new in pairs if old != new})
                allow(i.attributes.condition, set())
            elif i.opcode in (Opcode.CONDITIONAL, Opcode.CALL):
                passed: Sequence[tuple[HloComputation, Sequence[HloInstruction]]]
                if i.opcode is Opcode.CALL:
                    passed = [(i.attributes.to_apply, i.operands)]
                else:
                    branches = i.attributes.branch_computations
                    passed = [(b, [o]) for b, o in zip(branches, i.operands[1:], strict=True)]
                may = here.overwritten.get(i, {})
                for callee, operands in passed:
                    outside = [leaf for o in operands for leaf in given[o]]
                    own = self.arrays(callee).parameters
                    allow(callee, {p for p, leaf in zip(own, outside, strict=True) if leaf in may})


_UPDATING = frozenset({Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER})
_CALLING = frozenset({Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL})


_Key = tuple[int, ...]


class _Orderer:
    """Moves the readers of an overwritten array before the update, one update after the other, as far as possible.

    Instructions are sorted by keys: (5, 0) for instruction 5. Instructions that move before it get (5, -1, 0, 0), (5,
    -1, 1, 0), ...
    """

    def __init__(self, computation: HloComputation) -> None:
        self.found = Overwriting(list(computation.instructions))
        self._keys: dict[HloInstruction, _Key] = {i: (n, 0) for n, i in enumerate(computation.instructions)}
        self._moved = 0
        self._left = MOST_VISITS * len(computation.instructions)
        self._effect_before = {later: earlier for earlier, later in pairwise(effects_of(computation))}

    def put_behind(self, update: HloInstruction, leaf: Leaf, readers: Iterable[HloInstruction]) -> None:
        """Let `update` overwrite `leaf`, behind all its `readers`, unless one of these must run after it."""
        others = {r for r in readers if r is not update}
        earlier = self._needed_by(others, update)
        if earlier is None:
            return
        keys, before = self._keys, self._keys[update][:-1]
        for i in sorted(earlier, key=keys.__getitem__):
            keys[i] = (*before, -1, self._moved, 0)
            self._moved += 1
        self.found.before.setdefault(update, set()).update(others)
        self.found.overwritten.setdefault(update, {})[leaf] = others

    def order(self) -> list[HloInstruction]:
        """The instructions in the order that was found."""
        return sorted(self._keys, key=self._keys.__getitem__) if self._moved else self.found.order

    def _needed_by(self, readers: set[HloInstruction], update: HloInstruction) -> set[HloInstruction] | None:
        """The readers that come after `update`, and those of their operands that come after it, too. None if one of
        them needs `update`."""
        keys, bound = self._keys, self._keys[update]
        found = {r for r in readers if keys[r] > bound}
        stack = list(found)
        while stack:
            for i in self._before(stack.pop()):
                if i is update:
                    return None
                if keys[i] > bound and i not in found:
                    found.add(i)
                    stack.append(i)
            self._left -= 1
            if self._left < 0:
                return None
        return found

    def _before(self, instruction: HloInstruction) -> Iterator[HloInstruction]:
        """The instructions that must run before an instruction."""
        yield from instruction.operands
        yield from self.found.before.get(instruction, ())
        effect = self._effect_before.get(instruction)
        if effect is not None:
            yield effect

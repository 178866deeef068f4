"""Shrinking: from a program that shows a fault to a small one that still shows it.

`shows(module, arguments)` says whether it does. The values of all instructions are known, so each of them can become a
parameter: first single instructions are tried with more and more of the instructions that compute their operands. Then
the one found is reduced, and its arrays are made smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from ..builder import make_instruction, make_module
from ..cutout import EVERYTHING, copy_on, cut_out, frontier, within
from ..errors import HloError
from ..evaluator import Value, evaluate_all
from ..ir import HloComputation, HloInstruction, HloModule
from ..literal import Literal
from ..opcode import Opcode
from ..ops.structure import ConstantAttributes
from ..shape import Shape
from ..support.progress import current
from ..support.records import dataclass
from ..support.value_tree import leaves_of, value_of

NDArray = np.ndarray[Any, Any]
Shows = Callable[[HloModule, list[NDArray]], bool]

DEPTHS = (0, 1, 2, 3, 5, 8)
"""The depths to which the operands of an instruction are tried with it."""
MOST_STEPS = 50
"""The most steps of a loop in which the body is examined."""
MOST_CALLS = 3
"""The computations of one instruction that are tried as separate programs."""
MOST_PARAMETERS = 8
"""The most parameters that are tried in each other's place."""
SECONDS = 20.0
"""After which the smallest program so far is taken."""


@dataclass(frozen=True, slots=True)
class Specimen:
    """A program with arguments that shows a fault."""

    module: HloModule
    arguments: list[NDArray]

    def parameters(self) -> list[Value]:
        """The value of each parameter of the entry."""
        arrays = iter(self.arguments)
        return [value_of(parameter.shape, arrays) for parameter in self.module.entry.parameters]

    def values(self) -> dict[HloInstruction, Value]:
        """The values of the entry's instructions."""
        return evaluate_all(self.module.entry, self.parameters())

    @property
    def size(self) -> tuple[int, int]:
        """Instructions, then elements: the size that shrinking reduces."""
        elements = sum(leaf.num_elements for i in self.module.instructions() for leaf in i.shape.leaves())
        return sum(1 for _ in self.module.instructions()), elements


def shrunk(specimen: Specimen, shows: Shows, seconds: float = SECONDS) -> Specimen:
    """The smallest program that is found from `specimen`, which shows the fault."""
    end = time.monotonic() + seconds

    def holds(candidate: Specimen) -> bool:
        current().advance(0, f"shrink {specimen.size[0]} instructions")
        try:
            return shows(candidate.module, candidate.arguments)
        except (HloError, AssertionError, ValueError, IndexError, KeyError):
            return False  # a part that makes no sense without the rest

    for candidate in _parts(specimen):
        if time.monotonic() > end:
            break
        if candidate.size < specimen.size and holds(candidate):
            specimen = candidate
            break
    smaller = True
    while smaller:
        smaller = False
        for step in (_thinned, _resized):
            for candidate in step(specimen):
                if time.monotonic() > end:
                    return specimen
                if candidate.size < specimen.size and holds(candidate):
                    specimen, smaller = candidate, True
                    break
    return specimen


def specimen_of(
    root: HloInstruction, inputs: Sequence[HloInstruction], values: dict[HloInstruction, Value]
) -> Specimen:
    """The computation of `root` from `inputs`, on the values that these have."""
    return Specimen(cut_out(root, inputs), [a for i in inputs for a in leaves_of(values[i])])


def _parts(specimen: Specimen) -> Iterator[Specimen]:
    """Each instruction of the entry, with the instructions that compute its operands in a few steps: the smallest parts
    first."""
    values = specimen.values()
    for depth in DEPTHS:
        for root in specimen.module.entry.instructions:
            if root.opcode is not Opcode.PARAMETER and root in values:
                inside = within(root, depth)
                edge = {i for i in inside if any(o not in inside for o in i.operands)} - {root}
                yield specimen_of(root, frontier((root,), inside - edge), values)


def _thinned(specimen: Specimen) -> Iterator[Specimen]:
    """Something less: a computation without its caller; an instruction that becomes a parameter or one of its operands,
    or is no longer the root; two parameters that become one."""
    values = specimen.values()
    entry = specimen.module.entry
    root = entry.root
    inner = [i for i in entry.instructions if i.opcode is not Opcode.PARAMETER and i in values]
    inside = set(inner)
    for i in inner:
        for computation, arguments in islice(calls_of(i, [values[o] for o in i.operands]), MOST_CALLS):
            arrays = [array for value in arguments for array in leaves_of(value)]
            yield Specimen(cut_out(computation.root, computation.parameters), arrays)
    for i in reversed(inner):
        if i is not root:
            yield specimen_of(i, frontier((i,), inside), values)
    for operand in root.operands if root.opcode is Opcode.TUPLE else ():
        yield specimen_of(operand, frontier((operand,), inside), values)
    for i in reversed(inner):
        if i is not root and i.operands:
            yield specimen_of(root, frontier((root,), inside - {i}), values)
    for i in inner:
        for operand in dict.fromkeys(i.operands):
            if operand.shape == i.shape:
                new = copy_on(root, {i: operand})
                yield specimen_of(new, frontier((new,), EVERYTHING), values)
    for first, second in combinations(entry.parameters[:MOST_PARAMETERS], 2):
        if first.shape == second.shape:
            new = copy_on(root, {second: first})
            yield specimen_of(new, frontier((new,), EVERYTHING), values)
    needed = frontier((root,), inside)
    if len(needed) < len(entry.parameters):
        yield specimen_of(root, needed, values)


def calls_of(instruction: HloInstruction, operands: list[Value]) -> Iterator[tuple[HloComputation, Sequence[Value]]]:
    """The computations that an instruction runs, with the values that they get."""
    attributes = instruction.attributes
    if instruction.opcode is Opcode.CALL:
        yield attributes.to_apply, operands
    elif instruction.opcode is Opcode.WHILE:
        state = operands[0]
        for _ in range(MOST_STEPS):
            yield attributes.condition, [state]
            if not evaluate_all(attributes.condition, [state])[attributes.condition.root]:
                return
            yield attributes.body, [state]
            state = evaluate_all(attributes.body, [state])[attributes.body.root]
    elif instruction.opcode is Opcode.CONDITIONAL:
        branches = attributes.branch_computations
        index: Any = operands[0]
        taken = int(not index) if index.dtype == bool else int(index)
        taken = taken if 0 <= taken < len(branches) else len(branches) - 1
        yield branches[taken], [operands[1 + taken]]


SMALL_SIZES = (1, 2, 3, 4, 8)


def _resized(specimen: Specimen) -> Iterator[Specimen]:
    """All dimensions of one size made smaller, wherever that size occurs."""
    sizes = {s for i in specimen.module.entry.instructions for leaf in i.shape.leaves() for s in leaf.dimensions}
    for old in sorted(sizes, reverse=True):
        for new in SMALL_SIZES:
            if new < old:
                try:
                    yield _with_size(specimen, old, new)
                except (HloError, AssertionError):
                    continue


def _with_size(specimen: Specimen, old: int, new: int) -> Specimen:
    computation = _computation_with_size(specimen.module.entry, old, new)
    arguments = [np.array(_cut(a, old, new)) for a in specimen.arguments]
    return Specimen(make_module(specimen.module.name, computation), arguments)


def _computation_with_size(computation: HloComputation, old: int, new: int) -> HloComputation:
    copies: dict[HloInstruction, HloInstruction] = {}
    for i in computation.instructions:
        shape = _smaller(i.shape, old, new)
        attributes = i.attributes
        if i.opcode is Opcode.PARAMETER:
            copies[i] = replace(i, shape=shape)
            continue
        if i.opcode is Opcode.CONSTANT:
            attributes = ConstantAttributes(Literal(_cut(attributes.literal.array, old, new), shape.element.dtype))
        else:
            attributes = attributes.map_computations(lambda c: _computation_with_size(c, old, new))
        copies[i] = make_instruction(i.opcode, [copies[o] for o in i.operands], attributes, shape, name=i.name)
    return HloComputation(computation.name, tuple(copies.values()), copies[computation.root])


def _cut(array: NDArray, old: int, new: int) -> NDArray:
    cut: NDArray = array[tuple(slice(0, new if size == old else size) for size in array.shape)]
    return cut


def _smaller(shape: Shape, old: int, new: int) -> Shape:
    if shape.is_token:
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_smaller(s, old, new) for s in shape.tuple_shapes])
    return Shape.array(shape.element, [new if size == old else size for size in shape.dimensions])

"""The sizes of a fused computation: which dimensions always have the same size, and their names in the kernel.

A size is an argument of the kernel, so one compiled kernel serves all sizes. Two exceptions make better loops: sizes of
an inner loop up to `LITERAL_LIMIT` are written into the text (the loops unroll), and dimensions of size 1 have been
removed before. A loop of more than `FEW` iterations gains nothing from a literal if the end of its inner loop is an
argument, or if its inner loops have `LITERAL_LIMIT` iterations together. So a batch of 16 has the kernels of a batch
of 12 (`mark_loops`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.support.disjoint_sets import DisjointSets
from ..loops.expressions import ZERO, Expr, Name, Number, is_number
from ..loops.statements import SizeParameter
from .alignment import alignment_of
from .collapse_gather import batch_pairs, is_whole, offset_pairs

LITERAL_LIMIT = 16
"""Numbers up to this one are written into the text where that makes better loops."""

FEW = 4
"""A loop of so many iterations is unrolled around a longer one, too: a twentieth of the time of 4 times 20 elements.
Such sizes are coordinates, channels and parts of a concatenation rather than batches."""

Index = tuple[Expr, ...]
"""One component for each dimension of an array."""

Dimension = tuple[HloInstruction, int]


class Sizes:
    """Names for the dimensions of all instructions in one fused computation.

    Dimensions that must be equal share a name; two that happen to be equal do not, because the text would then depend
    on their values.
    """

    def __init__(self, computation: HloComputation) -> None:
        equal: DisjointSets[Dimension] = DisjointSets()
        self._find, self._same = equal.find, equal.unite
        self._names: dict[Dimension, Expr] = {}
        self._outer: set[Dimension] = set()
        self._count = 0
        self._constants: list[tuple[int, Expr]] = []
        self._extents: dict[tuple[tuple[Dimension, ...], int, int], Expr] = {}
        self.parameters: list[SizeParameter] = []
        for instruction in computation.instructions:
            self._unify(instruction)
        for group in alignment_of(computation):
            for value in group.values[1:]:
                for d in range(group.rank):
                    self._same((group.values[0], d), (value, d))
        self._unify_parts(computation)

    def _unify(self, instruction: HloInstruction) -> None:
        opcode, attributes, rank = instruction.opcode, instruction.attributes, instruction.shape.rank
        if is_elementwise(instruction):
            for operand in instruction.operands:
                for d in range(min(rank, operand.shape.rank)):
                    self._same((operand, d), (instruction, d))
        elif opcode is Opcode.BROADCAST:
            for e, d in enumerate(attributes.dimensions):
                self._same((instruction.operands[0], e), (instruction, d))
        elif opcode is Opcode.TRANSPOSE:
            for d, e in enumerate(attributes.dimensions):
                self._same((instruction.operands[0], e), (instruction, d))
        elif opcode is Opcode.REVERSE or opcode is Opcode.DYNAMIC_UPDATE_SLICE or opcode is Opcode.GET_TUPLE_ELEMENT:
            for d in range(rank):
                self._same((instruction.operands[0], d), (instruction, d))
        elif opcode is Opcode.CONCATENATE:
            for operand in instruction.operands:
                for d in range(rank):
                    if d != attributes.dimension:
                        self._same((operand, d), (instruction, d))
        elif opcode is Opcode.GATHER:
            for d, b in batch_pairs(instruction):
                self._same((instruction.operands[1], b), (instruction, d))
            for d, e in offset_pairs(instruction):
                if is_whole(instruction, e):
                    self._same((instruction.operands[0], e), (instruction, d))
            for e, b in zip(attributes.operand_batching_dims, attributes.start_indices_batching_dims, strict=True):
                self._same((instruction.operands[1], b), (instruction.operands[0], e))
        elif opcode is Opcode.REDUCE:
            arrays = instruction.operands[: len(instruction.operands) // 2]
            first = arrays[0]
            for other in arrays[1:]:
                for d in range(first.shape.rank):
                    self._same((other, d), (first, d))
            kept = [d for d in range(first.shape.rank) if d not in attributes.dimensions]
            for i, d in enumerate(kept):
                self._same((first, d), (instruction, i))

    def _unify_parts(self, computation: HloComputation) -> None:
        """Parts of equal dimensions have one size where they lack equally many elements: `x[1:]` and `x[:-1]`, or what
        concatenations join with one element. Few ones only, as a stencil or a roll by one does: how many more there
        are depends on the sizes themselves, so that parts would agree by chance."""
        parts: dict[tuple[Dimension, int], Dimension] = {}
        for instruction in computation.instructions:
            for whole, part in _parts(instruction):
                lacks = whole[0].shape.dimensions[whole[1]] - part[0].shape.dimensions[part[1]]
                if not lacks:
                    self._same(whole, part)
                elif lacks <= FEW:
                    self._same(parts.setdefault((self._find(whole), int(lacks)), part), part)

    def mark_outer(self, instruction: HloInstruction, dimension: int) -> None:
        """This dimension is sliced by `lo, hi`: its size is an argument even if it is small."""
        self._outer.add(self._find((instruction, dimension)))

    def mark_loops(self, domain: HloInstruction, dimensions: Sequence[int]) -> None:
        """Declare nested loops over these dimensions of the domain, outermost first. If the end of a loop is an
        argument, or the loops from it inwards have many iterations, the sizes of the loops around it are arguments too,
        unless they have few iterations."""
        sizes, iterations = domain.shape.dimensions, 1
        for d in sorted(dimensions, reverse=True):
            iterations *= sizes[d]
            if iterations >= LITERAL_LIMIT or self._find((domain, d)) in self._outer:
                self._outer |= {self._find((domain, k)) for k in dimensions if k < d and sizes[k] > FEW}
                return

    def of(self, instruction: HloInstruction, dimension: int) -> Expr:
        """The size of a dimension: a literal or the name of a size parameter."""
        root = self._find((instruction, dimension))
        found = self._names.get(root)
        if found is None:
            value = instruction.shape.dimensions[dimension]
            if value <= LITERAL_LIMIT and root not in self._outer:
                found = Number(value)
            else:
                found = self.argument(f"n{self._count}", value)
                self._count += 1
            self._names[root] = found
        return found

    def extent(self, instruction: HloInstruction, dimensions: tuple[int, ...], divisor: int, value: int) -> Expr:
        """How many values ``index // divisor`` has in memory: the number of tiles, perhaps with padding. It is an
        argument of the kernel, unless it is a size of the array."""
        if divisor == 1 and len(dimensions) == 1 and instruction.shape.dimensions[dimensions[0]] == value:
            return self.of(instruction, dimensions[0])
        key = (tuple(self._find((instruction, d)) for d in dimensions), divisor, value)
        found = self._extents.get(key)
        if found is None:
            found = self._extents[key] = self.argument(f"m{len(self._extents)}", value)
        return found

    def constant(self, value: int) -> Expr:
        """A start, step or offset: 0 and 1 are literals, others are arguments."""
        if value in (0, 1, -1):
            return Number(value)
        for known, name in self._constants:
            if known == value:
                return name
        found = self.argument(f"k{len(self._constants)}", value)
        self._constants.append((value, found))
        return found

    def argument(self, name: str, value: int) -> Name:
        """A number that the nest is cut by: always an argument, with a name of its own."""
        self.parameters.append(SizeParameter(name, value))
        return Name(name)

    def step(self, value: int) -> Expr:
        """A stride or a distance between holes. A literal if it is small: LLVM divides by literals much faster."""
        return Number(value) if 0 < value <= LITERAL_LIMIT else self.constant(value)

    def offset(self, instruction: HloInstruction, index: Index) -> Expr:
        """The row-major linear index: ``(i * n1 + j) * n2 + k``."""
        result: Expr = ZERO
        for d, component in enumerate(index):
            if d and not is_number(result, 0):
                result = result * self.of(instruction, d)
            result = result + component
        return result


def _parts(instruction: HloInstruction) -> Iterator[tuple[Dimension, Dimension]]:
    """Pairs of dimensions (whole, part): slices of an array, and operands of a concatenation."""
    if instruction.opcode is Opcode.SLICE:
        for d, stride in enumerate(instruction.attributes.strides):
            if stride == 1:
                yield (instruction.operands[0], d), (instruction, d)
    elif instruction.opcode is Opcode.CONCATENATE:
        for operand in instruction.operands:
            yield (instruction, instruction.attributes.dimension), (operand, instruction.attributes.dimension)

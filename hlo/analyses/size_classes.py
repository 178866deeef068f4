"""The classes of the sizes of a form: those that are equal in all computations of it, since operations require it.

A batch of 64 images for 64 channels has equal sizes by chance, and these are different sizes of its form. But the sizes
of two arrays that are added are one, however large they are. To overlook a rule costs time and nothing else: then two
observed sizes are compared, and the answer is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..shape import Shape
from ..support.disjoint_sets import DisjointSets
from .forms import FEW, attributes_with_sizes, has_sizes


class Classes:
    """Which sizes of a form are equal in all computations of it."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers: tuple[int, ...] = tuple(numbers)
        """The class of each size."""
        firsts: dict[int, int] = {}
        for place, number in enumerate(numbers):
            firsts.setdefault(number, place)
        self._firsts = tuple([firsts[number] for number in range(len(firsts))])

    def sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """One size for each class, of the sizes of a computation."""
        return tuple([sizes[place] for place in self._firsts])

    def places(self, of_classes: Sequence[Any]) -> Iterator[Any]:
        """One object for each size, of those for the classes."""
        return map(of_classes.__getitem__, self._numbers)

    def hold(self, sizes: Sequence[int]) -> bool:
        """True if the sizes of each class are equal, as they are in a computation that keeps the rules of shapes."""
        return all(map(int.__eq__, self.places(self.sizes(sizes)), sizes))


def classes_of(computations: Sequence[HloComputation]) -> Classes:
    """The classes of the sizes of computations, callees first, in the order of their form."""
    return _Equalities().of(computations)


_Places: TypeAlias = "tuple[int | _Places | None, ...]"
"""The places of the sizes of a shape: None for a dimension that is part of the form."""

_AS_THE_FIRST = frozenset((Opcode.DYNAMIC_UPDATE_SLICE, Opcode.REVERSE, Opcode.SCATTER, Opcode.SELECT_AND_SCATTER))
"""Operations whose result has the dimensions of the first operand."""


class _Equalities:
    """The places of sizes in sets: equal ones are in one set."""

    def __init__(self) -> None:
        self._sets: DisjointSets[int] = DisjointSets()
        self._count = 0
        self._places: dict[HloInstruction, _Places] = {}

    def of(self, computations: Sequence[HloComputation]) -> Classes:
        for computation in computations:
            for i in computation.instructions:
                for numbers in attributes_with_sizes(i.attributes):
                    self._of_numbers(numbers)
                self._places[i] = () if i.opcode is Opcode.CONSTANT else self._of_shape(i.shape)
                self._relate(i)
        classes: dict[int, int] = {}
        return Classes([classes.setdefault(self._sets.find(p), len(classes)) for p in range(self._count)])

    def _of_shape(self, shape: Shape) -> _Places:
        if not has_sizes(shape):
            return ()
        if shape.tuple_shapes is not None:
            return tuple(map(self._of_shape, shape.tuple_shapes))
        return self._of_numbers(shape.dimensions)

    def _of_numbers(self, numbers: Sequence[int]) -> _Places:
        first = self._count
        self._count += sum([n > FEW for n in numbers])
        new = iter(range(first, self._count))
        return tuple([next(new) if n > FEW else None for n in numbers])

    def _join(self, x: Any, y: Any) -> None:
        """Sizes in two places are equal, or those of two shapes of one rank."""
        if type(x) is int and type(y) is int:
            self._sets.unite(x, y)
        elif type(x) is tuple and type(y) is tuple and len(x) == len(y):
            for a, b in zip(x, y, strict=True):
                self._join(a, b)

    def _relate(self, i: HloInstruction) -> None:
        own, operands, attributes = self._places[i], [self._places[o] for o in i.operands], i.attributes
        opcode = i.opcode
        if has_trait(opcode, Trait.ELEMENTWISE):
            for operand in operands:
                self._join(own, operand)
        elif opcode in _AS_THE_FIRST:
            self._join(own, operands[0])
        elif opcode is Opcode.WHILE:
            self._join(own, operands[0])
            for called in i.called_computations():
                self._join(own, self._places.get(called.parameters[0]))
            self._join(own, self._places.get(attributes.body.root))
        elif opcode is Opcode.TUPLE:
            self._join(own, tuple(operands))
        elif opcode is Opcode.GET_TUPLE_ELEMENT and operands[0]:
            self._join(own, operands[0][attributes.index])
        elif opcode is Opcode.BROADCAST and own:
            for d, place in zip(attributes.dimensions, operands[0], strict=False):
                self._join(place, own[d])
        elif opcode is Opcode.CONCATENATE:
            for operand in operands:
                for d, (place, other) in enumerate(zip(own, operand, strict=False)):
                    if d != attributes.dimension:
                        self._join(place, other)
        elif opcode is Opcode.TRANSPOSE and operands[0]:
            self._join(own, tuple([operands[0][d] for d in attributes.dimensions]))
        elif opcode is Opcode.REDUCE:
            arrays = operands[: len(operands) // 2]
            for result, operand in zip(own if i.shape.is_tuple else (own,), arrays, strict=False):
                self._join(result, tuple([p for d, p in enumerate(operand) if d not in attributes.dimensions]))
                self._join(arrays[0], operand)
        elif opcode is Opcode.DOT and all(operands):
            self._relate_dot(own, operands[0], operands[1], attributes)

    def _relate_dot(self, own: _Places, lhs: _Places, rhs: _Places, attributes: Any) -> None:
        batches = attributes.lhs_batch_dims, attributes.rhs_batch_dims
        contracting = attributes.lhs_contracting_dims, attributes.rhs_contracting_dims
        for left, right in (batches, contracting):
            for a, b in zip(left, right, strict=True):
                self._join(lhs[a], rhs[b])
        results = [lhs[d] for d in batches[0]]
        for places, batch, reduced in zip((lhs, rhs), batches, contracting, strict=True):
            results += [p for d, p in enumerate(places) if d not in batch and d not in reduced]
        self._join(own, tuple(results))
